"""Connections of `http.request`: to an address that was checked, never by name, within one deadline for everything."""

from __future__ import annotations

import http.client
import io
import ipaddress
import queue
import socket
import ssl
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

from jobs.conf import conf
from jobs.errors import Fail, Retry
from jobs.steady import time

T = TypeVar("T")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Deadline:
    """A moment that every step of one request shares."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left. TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no complete answer within {self.seconds:g} s")
        return left


def lookup(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system resolves it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def addresses(host: str, port: int, deadline: Deadline) -> list[str]:
    """The addresses of a host that may be connected to. Retry when it has none now, Fail when all are refused."""
    try:
        found = _within(deadline, lambda: lookup(host, port))
    except (OSError, UnicodeError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise Retry(f"the host {host!r} cannot be resolved: {error}") from error
    if allowed := [text for text in found if is_allowed(host, text)]:
        return allowed
    raise Fail(
        f"the host {host!r} has the address {', '.join(found) or 'none'}, which is not public: name the host or its "
        "network in SCHEDULER['http_private_hosts'] to let jobs reach it"
    )


def is_allowed(host: str, text: str) -> bool:
    """Whether jobs may connect to this address, reached under this name."""
    names, networks = _allowed(conf().http_private_hosts)
    address = _behind_gateways(ipaddress.ip_address(text))
    return (
        host.rstrip(".").lower() in names
        or _is_public(address)
        or any(address.version == network.version and address in network for network in networks)
    )


@lru_cache(maxsize=4)
def _allowed(entries: tuple[str, ...]) -> tuple[frozenset[str], tuple[Network, ...]]:
    names, networks = set[str](), list[Network]()
    for entry in entries:
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            names.add(entry.rstrip(".").lower())
    return frozenset(names), tuple(networks)


def _behind_gateways(address: Address) -> Address:
    """The IPv4 address that the kernel (mapped) or a NAT64 gateway would pass the connection on to."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    # is_global alone takes some multicast addresses, and IPv6 ones that carry IPv4 ones, for public.
    if isinstance(address, ipaddress.IPv6Address) and (
        address.is_site_local or address.sixtofour or address.teredo
    ):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _within(deadline: Deadline, work: Callable[[], T]) -> T:
    """In a thread, because a name server that does not answer cannot be interrupted."""
    done: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except Exception as error:
            done.put((None, error))

    threading.Thread(target=run, name="http.request-lookup", daemon=True).start()
    try:
        result, error = done.get(timeout=deadline.left())
    except queue.Empty:
        deadline.left()
        raise TimeoutError("the name was not resolved in time") from None
    if error is not None:
        raise error
    return cast("T", result)


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Kept, because loading the certificates takes milliseconds."""
    return ssl.create_default_context()


class Connection(http.client.HTTPConnection):
    """To the first of `pinned` that answers. The name is only said (Host, SNI, certificate), never resolved again."""

    def __init__(self, host: str, port: int, *, tls: bool, pinned: list[str], deadline: Deadline) -> None:
        super().__init__(host, port)
        self.default_port = 443 if tls else 80
        self._tls, self._pinned, self._deadline = tls, pinned, deadline
        self._real: socket.socket | None = None

    def connect(self) -> None:
        self._real = self._open()
        if not is_allowed(self.host, self._real.getpeername()[0]):
            raise Fail(f"the connection to {self.host!r} ended at an address that is not allowed")
        if self._tls:
            self._real.settimeout(self._deadline.left())
            self._real = tls_context().wrap_socket(self._real, server_hostname=self.host)
        self.sock = _TimedSocket(self._real, self._deadline)

    def _open(self) -> socket.socket:
        for number, address in enumerate(self._pinned, 1):
            # A silent address must leave time for the next one.
            share = self._deadline.left() / (len(self._pinned) - number + 1)
            try:
                return socket.create_connection((address, self.port), timeout=share)
            except OSError:
                if number == len(self._pinned):
                    raise
        raise OSError("the host has no address")

    def end(self) -> None:
        """Close it for real: http.client closes `sock` while the response is still to be read."""
        self.close()
        if self._real is not None:
            self._real.close()


class _TimedSocket:
    """What http.client needs of a socket; every read and write has what is left of the deadline, not time of its own."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def sendall(self, data: Any) -> None:
        self._sock.settimeout(self._deadline.left())
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self._deadline))

    def close(self) -> None:
        pass


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.left())
        return self._sock.recv_into(buffer)
