"""Network faults: each process reaches the database through a TCP link of its own, which can stall, drop, half-close or
swallow what it carries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 1 << 16


class Pair:
    """One connection: the client's side and the server's."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server
        self.swallowed = False

    def abort(self) -> None:
        for side in (self.client, self.server):
            side.transport.abort()


class Link:
    """A port whose connections go on to a Unix socket. Its methods are for the proxy's own thread."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.port = 0
        self.pairs: set[Pair] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def stall(self) -> None:
        """Carry nothing until `resume`; new connections are accepted and hear nothing."""
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def drop(self) -> None:
        """End all connections by a reset."""
        for pair in list(self.pairs):
            pair.abort()

    def half_close(self, *, towards_client: bool) -> None:
        """One direction of each connection ends, the other stays open."""
        for pair in list(self.pairs):
            side = pair.client if towards_client else pair.server
            with suppress(OSError, RuntimeError):
                side.write_eof()

    def swallow(self) -> None:
        """The present connections carry nothing ever again, and nobody is told: as by a firewall that forgot them."""
        for pair in self.pairs:
            pair.swallowed = True

    def close(self) -> None:
        self.drop()
        if self._server is not None:
            self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = Pair(writer, forth)
        self.pairs.add(pair)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, forth, pair))
                group.create_task(self._carry(back, writer, pair))
        except* (OSError, RuntimeError):  # it was cut, or half-closed, under us
            pass
        finally:
            self.pairs.discard(pair)
            pair.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, pair: Pair) -> None:
        while data := await source.read(CHUNK):
            await self._open.wait()
            if pair.swallowed:
                continue
            target.write(data)
            await target.drain()
        await self._open.wait()
        if pair.swallowed:
            return
        with suppress(OSError, RuntimeError):
            target.write_eof()


class Proxy:
    """All links, in one thread."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def add(self, name: str, target: Path) -> int:
        """A new link; returns its port."""
        link = Link(target)
        asyncio.run_coroutine_threadsafe(link.listen(), self._loop).result(10)
        self.links[name] = link
        return link.port

    def tell(self, name: str, what: Callable[[Link], Any]) -> None:
        """Do this to all links whose name begins so."""

        async def do() -> None:
            for each, link in self.links.items():
                if each.startswith(name):
                    what(link)

        asyncio.run_coroutine_threadsafe(do(), self._loop).result(10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        for link in self.links.values():
            link.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # the transports take their leave
