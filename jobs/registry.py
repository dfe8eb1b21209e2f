"""`@job_type` makes a function a handler; `@cron` beside it gives it recurring firings. Registered by name."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from django.apps import apps

from jobs.conf import LONGEST, MOST_ATTEMPTS, conf
from jobs.cron import recurrence
from jobs.cron.policy import LONGEST_DELAY, OVERLAPS, require_one_of, require_span
from jobs.errors import CronError, NotConfigured, UnknownJobType
from jobs.retry import Backoff, default_backoff
from jobs.secret import is_secret
from jobs.slugs import name_of, slug_of

if TYPE_CHECKING:
    from jobs.models import Job

Handler = Callable[..., Any]
MAX_CONCURRENCY = 10_000
_KEY = re.compile(r"[^\W\d][\w-]*")
DEFAULT: Any = object()
"""Stands for `the setting's value`, where None has a meaning of its own."""


@dataclass(frozen=True, kw_only=True)
class CronDeclaration:
    """A recurring rule declared in code, synced to a CronDefinition by `rundispatcher`."""

    expression: str = ""
    every: timedelta | None = None
    timezone: str = "UTC"
    dst: str = "cron"
    name: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    tenant: str = "default"
    overlap: str = "allow_all"
    spread: timedelta = timedelta()


@dataclass(frozen=True)
class JobType:
    """A registered handler with its policy. Calling it calls the function itself."""

    name: str
    handler: Handler
    queue: str
    max_attempts_or_none: int | None
    backoff_or_none: Backoff | None
    timeout_or_default: timedelta | None
    atomic: bool
    exclusive: bool
    concurrency: int = 1
    crons: list[CronDeclaration] = field(default_factory=list)
    shown: tuple[str, ...] = ()
    """Paths in payload and result whose values everybody sees who may see the job."""
    searchable: tuple[str, ...] = ()
    """Paths in the payload by whose values everybody who may see the job may search for it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

    @property
    def max_attempts(self) -> int:
        return self.max_attempts_or_none or conf().max_attempts

    @property
    def backoff(self) -> Backoff:
        return self.backoff_or_none or default_backoff()

    @property
    def timeout(self) -> timedelta | None:
        """Soft timeout: the body is asked to stop. A grace period later its process is killed. None: no timeout."""
        return conf().timeout if self.timeout_or_default is DEFAULT else self.timeout_or_default

    @property
    def origin(self) -> str:
        """Where its handler is written: of a partial or another object, what that is made of."""
        name = getattr(self.handler, "__qualname__", type(self.handler).__qualname__)
        return f"{self.handler.__module__}.{name}"

    @cached_property
    def is_async(self) -> bool:
        return any(map(inspect.iscoroutinefunction, (self.handler, type(self.handler).__call__)))

    @cached_property
    def payload_type(self) -> type[Any] | None:
        """The dataclass that the second parameter is annotated with; None: payload as keyword arguments."""
        parameters = list(inspect.signature(self.handler).parameters.values())
        if len(parameters) != 2 or parameters[1].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            return None
        hint = typing.get_type_hints(self.handler).get(parameters[1].name)
        return hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None

    def schedule(self, payload: Any = None, **options: Any) -> Job:
        """`Job.objects.schedule` for this type: options are its keyword arguments (due_at, delay, tenant, …)."""
        job: Job = _manager().schedule(self.name, payload, **options)
        return job

    async def aschedule(self, payload: Any = None, **options: Any) -> Job:
        job: Job = await _manager().aschedule(self.name, payload, **options)
        return job

    def delay(self, **payload: Any) -> Job:
        """Schedule it for now with these keyword arguments as its payload."""
        return self.schedule(payload)


def _manager() -> Any:
    return apps.get_model("jobs", "Job").objects


class Registry:
    def __init__(self) -> None:
        self._types: dict[str, JobType] = {}

    def add(self, job_type: JobType) -> None:
        known = self._types.get(job_type.name)
        if known and known.origin != job_type.origin:
            raise NotConfigured(
                f"the job type {job_type.name!r} is registered twice: by {known.origin} and by {job_type.origin}"
            )
        self._types[job_type.name] = job_type

    def get(self, name: str) -> JobType | None:
        return self._types.get(name)

    def require(self, name: str) -> JobType | None:
        """The type, or None for one declared external. UnknownJobType for any other name."""
        if found := self._types.get(name):
            return found
        if name in conf().external_types:
            return None
        raise UnknownJobType(
            "job_type",
            f"{name!r} is not registered. Decorate its handler with @job_type in an installed app's tasks.py, or name "
            "it in SCHEDULER['external_types'] when another code base handles it.",
        )

    def names(self) -> list[str]:
        return sorted(self._types)

    def types(self) -> list[JobType]:
        return [self._types[name] for name in self.names()]

    def remove(self, name: str) -> None:
        """For tests."""
        self._types.pop(name, None)


registry = Registry()


def job_type(
    name: str,
    *,
    queue: str | None = None,
    max_attempts: int | None = None,
    backoff: Backoff | None = None,
    timeout: timedelta | None = DEFAULT,
    atomic: bool = False,
    exclusive: bool = False,
    concurrency: int = 1,
    shown: Iterable[str] = (),
    searchable: Iterable[str] = (),
) -> Callable[[Handler], JobType]:
    """Register the function below as the handler of `name`; it receives a Context and its payload.

    `queue`: its work queue (default: one of its own). `atomic`: run body and completion in one transaction, so that
    its writes to this database happen exactly once. `exclusive`: its process is killed at the end of a lease that
    could not be renewed. `concurrency`: how many run at once with one concurrency key. `shown`: paths in payload and
    result (`order.id`, `items.*.sku`) whose values the console shows to everybody who may see the job; of all others it
    shows kinds only. `searchable`: paths of keys in the payload (`order.id`) that the console's search takes, as in
    `payload.order.id:17`; who may see the job can so find out their values. NotConfigured for wrong options or a name
    that is taken.
    """

    def register(handler: Handler) -> JobType:
        made = JobType(
            name,
            handler,
            queue or name,
            max_attempts,
            backoff,
            timeout,
            atomic,
            exclusive,
            concurrency,
            list(getattr(handler, "_cron_declarations", [])),
            (shown,) if isinstance(shown, str) else tuple(shown),
            (searchable,) if isinstance(searchable, str) else tuple(searchable),
        )
        _check(made)
        registry.add(made)
        return made

    return register


def _check(made: JobType) -> None:
    for what, name in (("name", made.name), ("queue", made.queue)):
        try:
            name_of(name)
        except ValueError as error:
            raise NotConfigured(f"@job_type({made.name!r}): its {what} {error}") from None
    attempts = made.max_attempts_or_none
    for option, value, most in (
        ("max_attempts", 1 if attempts is None else attempts, MOST_ATTEMPTS),
        ("concurrency", made.concurrency, MAX_CONCURRENCY),
    ):
        number: object = value
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            raise NotConfigured(
                f"@job_type({made.name!r}): {option} is {number!r}; a whole number from 1 to {most}"
            )
    _check_times(made)
    _check_paths(made)
    if inspect.isgeneratorfunction(made.handler) or inspect.isasyncgenfunction(made.handler):
        raise NotConfigured(f"@job_type({made.name!r}): the handler yields, and nobody would go through what")
    try:
        inspect.signature(made.handler).bind_partial(None)
    except (TypeError, ValueError):
        raise NotConfigured(
            f"@job_type({made.name!r}): the handler takes no context; add a first parameter"
        ) from None


def _check_times(made: JobType) -> None:
    timeout: object = made.timeout_or_default
    is_span = isinstance(timeout, timedelta) and timedelta() < timeout <= LONGEST
    if timeout is not DEFAULT and timeout is not None and not is_span:
        raise NotConfigured(
            f"@job_type({made.name!r}): timeout is {timeout!r}; it must be a timedelta above 0 and up to "
            f"{LONGEST.days} days, or None for none"
        )
    if made.backoff_or_none is not None and not isinstance(made.backoff_or_none, Backoff):
        raise NotConfigured(
            f"@job_type({made.name!r}): backoff is {made.backoff_or_none!r}; it must be a Backoff, as "
            "Backoff.constant(timedelta(minutes=1))"
        )
    if made.atomic and (made.is_async or timeout is None):
        raise NotConfigured(f"@job_type({made.name!r}): an atomic handler is not async and has a timeout")


def _check_paths(made: JobType) -> None:
    if any(not part for path in made.shown for part in path.split(".")):
        raise NotConfigured(
            f"@job_type({made.name!r}): a path of shown has a name between all dots, as in items.*.sku"
        )
    for path in made.searchable:
        keys = path.split(".")
        # Keys alone: a place in a list can be that of a header's value, whose name stands before it.
        if not all(_KEY.fullmatch(key) for key in keys):
            raise NotConfigured(
                f"@job_type({made.name!r}): {path!r} of searchable is no path of keys that begin with a letter, as in "
                "order.id"
            )
        if secret := next(filter(is_secret, keys), None):
            raise NotConfigured(
                f"@job_type({made.name!r}): {path!r} cannot be searchable: what is called {secret!r} is secret"
            )


def cron(
    expression: str = "",
    *,
    every: timedelta | None = None,
    timezone: str = "UTC",
    dst: str = "cron",
    name: str = "",
    payload: dict[str, Any] | None = None,
    tenant: str = "default",
    overlap: str = "allow_all",
    spread: timedelta = timedelta(),
) -> Callable[[Any], Any]:
    """Fire the job type beside it at these times: `@cron("0 1 * * *", timezone="Europe/Berlin")`, above or below
    `@job_type`; or `@cron(every=timedelta(minutes=5))`. Several are told apart by `name`. `overlap` and `spread`: as of
    a CronDefinition. CronError for a rule that is wrong.
    """
    recurrence(expression=expression, tz=timezone, dst=dst, every=every)
    require_one_of("overlap", overlap, OVERLAPS)
    require_span("spread", spread, LONGEST_DELAY)
    for what, check, given in (
        ("tenant", slug_of, tenant),
        ("name", partial(name_of, longest=200), name or "default"),
    ):
        try:
            check(given)
        except ValueError as error:
            raise CronError(what, str(error)) from None
    declaration = CronDeclaration(
        expression=expression,
        every=every,
        timezone=timezone,
        dst=dst,
        name=name,
        payload=payload or {},
        tenant=tenant,
        overlap=overlap,
        spread=spread,
    )

    def declare(target: Any) -> Any:
        if isinstance(target, JobType):
            target.crons.append(declaration)
        else:
            target._cron_declarations = [*getattr(target, "_cron_declarations", []), declaration]
        return target

    return declare
