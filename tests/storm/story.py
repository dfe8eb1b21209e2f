"""The story: start, a calm, the storm, heal, another calm, quiet, the judgement."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Sequence

from django.core.management import call_command
from django.db import connections

from jobs.clock import boottime
from jobs.models import CronDefinition, Queue, QueueEntry, Tenant, Timer
from tests.demo.screen import Screen
from tests.storm.census import Census
from tests.storm.cluster import Cluster
from tests.storm.environment import LEASE
from tests.storm.facts import gather
from tests.storm.judge import Verdict, judge, slower
from tests.storm.ledger import END, START
from tests.storm.load import LIMITS, QUEUE_LIMITS, TENANTS, Client
from tests.storm.notes import Notes
from tests.storm.report import table
from tests.storm.weather import Weather

CALM, LONG_CALM = 15.0, 40.0
"""Seconds without faults, before and after, in which throughput is counted; the second in a long storm."""
LONG = 600.0
"""A storm of so many seconds is judged by its throughput as well: others count for too short to tell noise from harm."""
WARM = 12.0
"""Seconds until the load is steady: the longest delay of a job."""
SETTLED = LEASE + 5.0
"""Seconds from the healing to the second calm."""
PATIENCE = 180.0
"""Seconds without any progress until the storm no longer waits for quiet."""
SHOWN = 20


class Story:
    def __init__(
        self, screen: Screen, cluster: Cluster, seed: int, seconds: float, *, apart: float = 0.0
    ) -> None:
        self.screen, self.cluster, self.seed, self.seconds = screen, cluster, seed, seconds
        self.notes = Notes()
        self.client = Client(seed, self.notes)
        self.weather = Weather(seed, cluster, self.notes, apart=apart)
        self.census = Census(cluster.fleet, self.notes.last_seen)

    def tell(self) -> int:
        """The exit code: 0 only when everything held."""
        self.prepare()
        self.cluster.start_fleet()
        self.census.start()
        self.screen.chapter("load", "Jobs of all kinds, at a steady rate.")
        self.client.start()
        self.cluster.wait(WARM)
        before = self.count_calm()
        self.notes.calm_at = boottime() - CALM / 2
        self.screen.chapter("storm", f"{self.seconds:.0f} s of faults, drawn from seed {self.seed}.")
        for strike in self.weather.blow(self.seconds):
            pids = "all" if strike.pids is None else ",".join(map(str, sorted(strike.pids)))
            self.screen.line(
                f"{self.screen.elapsed:5.1f} s  {strike.name}, {strike.began:.1f} to {strike.ended:.1f}, {pids}"
            )
        self.screen.chapter("heal", "Everything is whole again.")
        self.cluster.heal()
        self.cluster.wait(SETTLED)
        healed = boottime()
        after = self.count_calm()
        complaints = self.client.complaints
        self.client.stop()
        self.wait_for_quiet()
        idle = self.idle(healed - SETTLED)
        self.weather.end()
        self.census.end()
        self.screen.chapter("judgement", "What was promised, against the ledger that the handlers wrote.")
        facts = gather(self.cluster, idle)
        verdict = judge(self.cluster.ledger.read(), self.notes, facts, LIMITS, QUEUE_LIMITS)
        verdict.complaints += [*complaints, *self.cluster.fleet.complaints]
        if self.seconds >= LONG:
            verdict.complaints += slower(before, after)
        return self.say(verdict, (before, after))

    def prepare(self) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        for slug in TENANTS:
            Tenant.objects.create(slug=slug, max_running=LIMITS.get(slug))
        for name, limit in QUEUE_LIMITS.items():
            Queue.objects.create(name=name, max_running=limit)
        self.cluster.server.execute("CREATE TABLE storm_effect (job_id uuid, attempt integer)")
        connections.close_all()

    def count_calm(self) -> float:
        """Jobs a second that finish while nothing strikes."""
        begun = boottime()
        self.cluster.wait(LONG_CALM if self.seconds >= LONG else CALM)
        ends = [line for line in self.cluster.ledger.read() if line.event == END and line.at >= begun]
        return len(ends) / (boottime() - begun)

    def wait_for_quiet(self) -> None:
        CronDefinition.objects.update(enabled=False)
        fewest, since = self._left(), boottime()
        while fewest and boottime() - since < PATIENCE:
            self.cluster.wait(1.0)
            if (left := self._left()) < fewest:
                fewest, since = left, boottime()
        for entry in QueueEntry.objects.all()[:SHOWN]:
            self.screen.line(
                f"still there: {entry.job_type} {entry.job_id}, attempt {entry.attempt}, {vars(entry)}"
            )

    def _left(self) -> int:
        return Timer.objects.count() + QueueEntry.objects.count()

    def idle(self, since: float) -> list[str]:
        """Members that have done nothing since everything was whole again."""
        busy = {line.pid for line in self.cluster.ledger.read() if line.event == START and line.at >= since}
        idle = [member.name for member in self.cluster.fleet.of("worker") if not member.pids & busy]
        return [*idle, *self._silent_dispatchers(), *([] if self._web_answers() else ["web 1"])]

    def _silent_dispatchers(self) -> list[str]:
        with self.cluster.server.session() as connection:
            rows = connection.execute(
                "SELECT pid FROM jobs_process WHERE kind = 'dispatcher' AND ended_at IS NULL "
                "AND lease_expires_at > clock_timestamp()"
            ).fetchall()
        alive = {pid for (pid,) in rows}
        return [m.name for m in self.cluster.fleet.of("dispatcher") if not m.pids & alive]

    def _web_answers(self) -> bool:
        def answers() -> bool:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.cluster.web_port}/healthz", timeout=5
                ) as reply:
                    return bool(reply.status == 200)
            except OSError:
                return False

        return self.cluster.wait(30, answers)

    def say(self, verdict: Verdict, throughput: tuple[float, float]) -> int:
        for complaint in _some([f"lost: {each}" for each in verdict.lost]) + _some(verdict.complaints):
            self.screen.line(f"WRONG: {complaint}")
        restarts = self.cluster.fleet.restarts
        self.screen.line(
            "\n" + table(verdict, self.notes, seed=self.seed, throughput=throughput, restarts=restarts)
        )
        return verdict.exit_code


def _some(complaints: Sequence[str]) -> list[str]:
    more = len(complaints) - SHOWN
    return [*complaints[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
