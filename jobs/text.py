"""Any text, and any exception, made fit to be stored: valid for PostgreSQL, short, without passwords."""

from __future__ import annotations

import re
import sysconfig
import traceback
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from textwrap import indent
from types import FrameType, TracebackType

CLASS_BYTES = 200
MAX_CHAIN = 8
MAX_EXCEPTIONS = 30
MAX_GROUP_DEPTH = 5
FRAMES_KEPT = 20
"""At each end of a traceback."""
FINGERPRINT_FRAMES = 3
MAX_NOTES = 5
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
_MARGIN = 4096  # what a cut takes along, so that a password at the cut is seen as part of its URL

# No scheme before the "://": matching one makes long words quadratic. A port is digits up to a slash or a quote. The
# second branch is for passwords with an unescaped slash in them.
_URL_PASSWORD = re.compile(
    r"""(://[^\s/?\#:@\[]{0,256}:)(?!\d{1,5}["'])(?:[^\s/?\#]{1,1024}@|(?!\d+[/?\#])[^\s@"'<>]{1,1024}@)""",
    re.VERBOSE,
)
_NAMED_PASSWORD = re.compile(
    r"""(?i)((?:password|passwd|pwd)(?:[ ]?=[ ]?|["'][ ]?:[ ]?))('[^']*'|"[^"]*"|[^\s&,;'")}\]]+)"""
)
# A name alone may be code ("token=token"): of what stands there bare, only what looks made by a machine is hidden.
_NAMED_SECRET = re.compile(
    r"""(?i)((?:secret|token|(?:api|access|private)[_-]?key)["']?(?:[ ]?=[ ]?|[ ]?:[ ]?))"""
    r"""('[^'\s]{4,}'|"[^"\s]{4,}"|(?=[^\s&,;'")}\]]{0,99}\d)[^\s&,;'")}\]]{8,})"""
)
_AUTHORIZATION = re.compile(
    r"""(?i)(\bbearer[ ](?=[\w\-.~+/]{0,99}\d)|authorization["']?[ ]?[:=][ ]?["']?(?:basic|token|bearer)[ ])[\w\-.~+/]{8,}=*"""
)
_FOREIGN = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"), "<frozen")


@dataclass(frozen=True, slots=True)
class ErrorText:
    """An exception as text; together at most the limit it was described with."""

    cls: str
    message: str
    traceback: str
    fingerprint: str
    """Equal for errors of the same class from the same place, whatever their messages and lines."""


def scrub(text: str) -> str:
    """Hide passwords and the like: in URLs (postgres://u:***@h), behind `password=`, `api_key=` or `Bearer`."""
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(r"\1***@", text)
    for pattern in (_AUTHORIZATION, _NAMED_PASSWORD, _NAMED_SECRET):
        text = pattern.sub(r"\1***", text)
    return text


def storable(text: str, limit_bytes: int) -> str:
    """`text` as PostgreSQL can store it, at most `limit_bytes` of UTF-8: NUL and lone surrogates become visible
    escapes; of a longer text head and tail are kept around a line that says how much is missing."""
    text = str.__str__(text)  # of a subclass, whose own methods may lie
    if len(text) <= limit_bytes:
        escaped = _escaped(text)
        if len(escaped) <= limit_bytes:
            return escaped.decode()
    return _cut(text, text, len(text), limit_bytes)


def describe_exception(exc: BaseException, limit: int) -> ErrorText:
    """Class, message and traceback of `exc`, together at most `limit` bytes, of which the message has up to an eighth.
    Never raises, whatever the exception's own methods do."""
    cls = storable(class_name(exc), min(CLASS_BYTES, limit // 8))
    message = _short(_message(exc), limit // 8)
    try:
        trace, mark = "".join(_Rendering(limit // 8).blocks(exc)), fingerprint(exc)
    except Exception as error:
        trace, mark = f"(the traceback could not be rendered: {type(error).__name__})", _hash([cls])
    return ErrorText(cls, message, _short(trace, limit - len(cls.encode()) - len(message.encode())), mark)


def class_name(exc: BaseException) -> str:
    """`package.module.Class`, without the module for built-in ones."""
    kind = type(exc)
    module = str(kind.__dict__.get("__module__", ""))
    name: str = type.__dict__["__qualname__"].__get__(kind)
    return name if module in ("builtins", "") else f"{module}.{name}"


def fingerprint(exc: BaseException) -> str:
    """16 hex digits of the class and its innermost frames (file name and function) outside of libraries; of a group,
    also of the classes in it."""
    frames: list[tuple[str, str]] = []
    for frame, _ in traceback.walk_tb(exc.__traceback__):
        place = (frame.f_code.co_filename, frame.f_code.co_name)
        if not frames or frames[-1] != place:  # a recursion counts once, whatever its depth
            frames.append(place)
    own = [place for place in frames if not any(part in place[0] for part in _FOREIGN)] or frames
    parts = [
        class_name(exc),
        *(f"{Path(file).name}:{function}" for file, function in own[-FINGERPRINT_FRAMES:]),
    ]
    if isinstance(exc, BaseExceptionGroup):
        parts += sorted({class_name(inner) for inner in exc.exceptions})
    return _hash(parts)


def _hash(parts: list[str]) -> str:
    return blake2b("\n".join(parts).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def _escaped(text: str) -> bytes:
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")


def _head(text: str, room: int) -> str:
    fits = bisect_right(range(min(len(text), room) + 1), room, key=lambda n: len(_escaped(text[:n]))) - 1
    return text[:fits]


def _tail(text: str, room: int) -> str:
    size = len(text)
    fits = bisect_right(range(min(size, room) + 1), room, key=lambda n: len(_escaped(text[size - n :]))) - 1
    return text[size - fits :]


def _cut(start: str, end: str, length: int, limit: int) -> str:
    """Head of `start` and tail of `end`, two views of one text of `length` characters, in `limit` bytes."""
    room = (limit - len(_marker(length).encode())) // 2
    if room <= 0:
        return _escaped(_head(start, max(limit, 0))).decode()
    head, tail = _head(start, room), _tail(end, room)
    return _escaped(head).decode() + _marker(length - len(head) - len(tail)) + _escaped(tail).decode()


def _marker(characters: int) -> str:
    return f"\n… {characters:,} characters cut …\n"


def _short(text: str, limit: int) -> str:
    """Scrubbed and storable. Of a huge text only both ends are looked at and copied."""
    text = str.__str__(text)
    window = limit + _MARGIN
    if len(text) <= 2 * window:
        return storable(scrub(text), limit)
    return _cut(scrub(text[:window]), scrub(text[-window:]), len(text), limit)


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except BaseException as error:  # even SystemExit: reading a message must not end the worker
        return f"(str() of this {type(exc).__name__} raised {type(error).__name__})"


class _Rendering:
    """Python's traceback format, bounded in frames, causes, groups and text, and safe from cycles."""

    def __init__(self, message_bytes: int) -> None:
        self.message_bytes = message_bytes
        self.left = MAX_EXCEPTIONS
        self.seen: set[int] = set()

    def blocks(self, exc: BaseException, depth: int = 0) -> Iterator[str]:
        """Oldest cause first, as Python prints it."""
        chain = self._chain(exc)
        half = MAX_CHAIN // 2
        for number, (each, link) in enumerate(reversed(chain)):
            if number < half or number >= len(chain) - half:
                yield from self._one(each, depth)
                yield link
            elif number == half:
                yield f"… {len(chain) - 2 * half} exceptions left out …\n\n"

    def _chain(self, exc: BaseException) -> list[tuple[BaseException, str]]:
        """`exc` and what led to it, newest first, each with the line that leads on to the one before it."""
        chain: list[tuple[BaseException, str]] = []
        each: BaseException | None = exc
        link = ""
        while each is not None and id(each) not in self.seen:
            self.seen.add(id(each))
            chain.append((each, link))
            if each.__cause__ is not None:
                each, link = each.__cause__, _CAUSE
            else:
                each, link = (None if each.__suppress_context__ else each.__context__), _CONTEXT
        return chain

    def _one(self, exc: BaseException, depth: int) -> Iterator[str]:
        self.left -= 1
        if exc.__traceback__ is not None:
            yield "Traceback (most recent call last):\n"
            yield from _frames(exc.__traceback__)
        message = _short(_message(exc), self.message_bytes)
        yield f"{class_name(exc)}: {message}\n" if message else f"{class_name(exc)}\n"
        for note in list(getattr(exc, "__notes__", None) or [])[:MAX_NOTES]:
            yield _short(note if isinstance(note, str) else ascii(note), self.message_bytes) + "\n"
        if isinstance(exc, BaseExceptionGroup):
            yield from self._members(exc, depth + 1)

    def _members(self, group: BaseExceptionGroup[BaseException], depth: int) -> Iterator[str]:
        for number, inner in enumerate(group.exceptions):
            if self.left <= 0 or depth > MAX_GROUP_DEPTH:
                yield f"  +- … {len(group.exceptions) - number} more left out …\n"
                return
            yield f"  +- {number + 1} of {len(group.exceptions)}\n"
            for block in self.blocks(inner, depth):
                yield indent(block, "  | ")


def _frames(trace: TracebackType) -> list[str]:
    head: list[tuple[FrameType, int]] = []
    tail: deque[tuple[FrameType, int]] = deque(maxlen=FRAMES_KEPT)
    dropped = 0
    for place in traceback.walk_tb(trace):
        dropped += len(tail) == FRAMES_KEPT
        (head if len(head) < FRAMES_KEPT else tail).append(place)
    gap = [f"  … {dropped:,} frames left out …\n"] if dropped else []
    extract = traceback.StackSummary.extract
    return [*extract(iter(head)).format(), *gap, *extract(iter(tail)).format()]
