"""`settings.SCHEDULER` as one frozen, validated value. Every default is here; durations are timedeltas."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from jobs.errors import NotConfigured, describe

MOST = 1_000_000
"""No limit and no rate is higher: what is meant is unlimited, which is empty or None."""


LONGEST = timedelta(days=36_500)
"""No duration is longer: it is added to the present time, and the calendar has an end."""
MOST_ATTEMPTS = 10_000
MAX_DAYS = 1000
"""Days that exist at once, each a partition of every big table."""


@dataclass(frozen=True, kw_only=True)
class Conf:
    # scheduling
    max_attempts: int = 20
    max_horizon: timedelta = timedelta(days=5 * 365)
    payload_bytes: int = 256 * 1024
    result_bytes: int = 256 * 1024
    error_bytes: int = 32 * 1024
    external_types: tuple[str, ...] = ()
    """Names that other code bases handle: schedule() accepts them without a handler here."""
    schedule_lock_timeout: timedelta | None = None
    """How long schedule() with a unique key waits for a concurrent caller with the same key; None: for ever."""

    # dispatching
    look_ahead: timedelta = timedelta(seconds=5)
    period: timedelta = timedelta(seconds=1)
    dispatch_batch: int = 2000
    cron_ahead: timedelta = timedelta(seconds=120)
    days_ahead: int = 35
    retention: timedelta = timedelta(days=30)

    # working
    lease: timedelta = timedelta(seconds=30)
    idle_poll: timedelta = timedelta(seconds=2)
    grace: timedelta = timedelta(seconds=30)
    timeout: timedelta | None = timedelta(hours=1)
    processes: int = 2
    threads: int = 8
    claim_batch: int = 500
    backoff_base: timedelta = timedelta(seconds=15)
    backoff_cap: timedelta = timedelta(hours=6)
    max_crashes: int = 3

    # handlers that reach outside: empty means none
    django_commands: tuple[str, ...] = ()
    shell_commands: tuple[str, ...] = ()
    """Command lines that shell.run may run, each as a whole; "*" allows every one."""
    http_private_hosts: tuple[str, ...] = field(default=())
    """Host names or networks (CIDR) that http.request may reach although they are private."""

    # operators
    audit_retention: timedelta = timedelta(days=400)
    """How long the audit is kept; the database refuses to delete what is younger than a year."""
    approve_above: int | None = None
    """A bulk operation on more jobs, or on nobody knows how many, begins when a second person has approved it; None:
    never."""
    password_age: timedelta | None = None
    """In the console, who changes limits or sets a bulk operation going has logged in or given the password in this
    time; None: that is not asked for."""

    # tenants
    tenant_max_running: int | None = None
    """max_running of a tenant created on first use; None: unlimited, 0: none may run."""
    noisy_share: float = 0.70
    """Share of a worker's threads that one tenant may hold while others wait; 1: all of them. A queue may have its own."""

    @property
    def idle_period(self) -> timedelta:
        """Between two dispatch passes while nothing comes due: just short enough that no job reaches its queue late."""
        return max(self.period, (self.look_ahead - self.idle_poll) * 5 / 6)

    def _check_numbers(self) -> None:
        positive = [
            "max_attempts",
            "payload_bytes",
            "result_bytes",
            "error_bytes",
            "dispatch_batch",
            "days_ahead",
            "processes",
            "threads",
            "claim_batch",
            "max_crashes",
        ]
        for name in positive:
            value = getattr(self, name)
            if value <= 0:
                raise NotConfigured(f"SCHEDULER[{name!r}] is {value!r}; it must be positive")
        for name in _DURATIONS:
            value = getattr(self, name)
            if value is not None and not timedelta() < value <= LONGEST:
                raise NotConfigured(
                    f"SCHEDULER[{name!r}] is {value!r}; it must be positive, and {LONGEST.days} days at most"
                )
        if self.max_attempts > MOST_ATTEMPTS:
            raise NotConfigured(
                f"SCHEDULER['max_attempts'] is {self.max_attempts}; at most {MOST_ATTEMPTS} are made"
            )

    def __post_init__(self) -> None:
        self._check_numbers()
        if self.idle_poll + self.period >= self.look_ahead:
            raise NotConfigured(
                f"SCHEDULER: idle_poll ({self.idle_poll}) + period ({self.period}) must be shorter than look_ahead "
                f"({self.look_ahead}), or a job may reach its queue after its due time"
            )
        if self.tenant_max_running is not None and not 0 <= self.tenant_max_running <= MOST:
            raise NotConfigured(
                f"SCHEDULER['tenant_max_running'] is {self.tenant_max_running}; it must be 0 to {MOST}, or None: "
                "unlimited"
            )
        if self.approve_above is not None and self.approve_above < 0:
            raise NotConfigured(
                f"SCHEDULER['approve_above'] is {self.approve_above}; it must be a number of jobs, or None: never"
            )
        if not 0.01 <= self.noisy_share <= 1:
            raise NotConfigured(f"SCHEDULER['noisy_share'] is {self.noisy_share}; it must be 0.01 to 1")
        if self.cron_ahead > timedelta(days=1):
            raise NotConfigured(
                f"SCHEDULER['cron_ahead'] is {self.cron_ahead}; at most a day is written ahead"
            )
        if self.audit_retention < timedelta(days=366):
            raise NotConfigured(
                f"SCHEDULER['audit_retention'] is {self.audit_retention}; the audit is kept 366 days at least"
            )
        if self.retention < timedelta(days=3):
            raise NotConfigured(f"SCHEDULER['retention'] is {self.retention}; at least 3 days are kept")
        kept = self.retention.days + self.days_ahead + 3  # of those at either end, and today
        if kept > MAX_DAYS:
            raise NotConfigured(
                f"SCHEDULER: retention ({self.retention.days} days) and days_ahead ({self.days_ahead}) need {kept} days "
                f"at once, and no more than {MAX_DAYS} exist: keep them for less long"
            )


_DURATIONS = {f.name for f in fields(Conf) if "timedelta" in str(f.type)}
_NULLABLE = {f.name for f in fields(Conf) if "None" in str(f.type)}


def parse(values: dict[str, Any]) -> Conf:
    """Plain settings (durations also as numbers of seconds) to a Conf. NotConfigured names a wrong key or value."""
    if not isinstance(values, dict):
        raise NotConfigured(f"SCHEDULER is {describe(values)}; it must be a dict of settings")
    known = {f.name: f for f in fields(Conf)}
    clean: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise NotConfigured(f"SCHEDULER has no setting {name!r}; it knows {', '.join(sorted(known))}")
        clean[name] = _coerce(name, value, known[name].default)
    return Conf(**clean)


def _coerce(name: str, value: Any, default: Any) -> Any:
    if value is None:
        if name in _NULLABLE:
            return None
        raise NotConfigured(f"SCHEDULER[{name!r}] must not be None")
    if name in _DURATIONS:
        return _duration(name, value)
    if isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotConfigured(f"SCHEDULER[{name!r}] must be a number, not {value!r}")
        return float(value)
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple | set | frozenset) or not all(
            isinstance(item, str) for item in value
        ):
            raise NotConfigured(f"SCHEDULER[{name!r}] must be a list of strings, not {value!r}")
        return tuple(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotConfigured(f"SCHEDULER[{name!r}] must be a whole number, not {value!r}")
    return value


def _duration(name: str, value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise NotConfigured(f"SCHEDULER[{name!r}] must be a timedelta or seconds, not {value!r}")
    try:
        return value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (ValueError, OverflowError):
        raise NotConfigured(f"SCHEDULER[{name!r}] is {value!r}; it must be a number of seconds") from None


@lru_cache(maxsize=1)
def conf() -> Conf:
    return parse(getattr(settings, "SCHEDULER", {}))


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "SCHEDULER":
        conf.cache_clear()


setting_changed.connect(_forget)
