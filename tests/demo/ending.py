"""The end: the judgement, as a table, a line and an exit code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

from django.core.management import CommandError, call_command

from jobs import clock
from jobs.models import Job
from jobs.states import JobState
from tests.demo import judge as judging
from tests.demo.ledger import Ledger
from tests.demo.report import table
from tests.demo.screen import Screen
from tests.demo.work import Client, Crons


def judge(screen: Screen, client: Client, crons: Crons, ledger: Ledger) -> int:
    screen.chapter("judgement", "The ids that we noted against the ledger that the handlers wrote.")
    skew = (clock.now() - datetime.now(UTC)).total_seconds()
    complaints, clean = checkjobs()
    failed = Job.objects.in_state(JobState.FAILED, client.begun, client.last_due + timedelta(minutes=1))
    verdict = judging.judge(
        client.noted,
        crons.owed(client.last_due),
        client.poison,
        ledger.read(),
        judging.Scheduler(failed=frozenset(failed.values_list("pk", flat=True)), clean=clean),
        skew=skew,
    )
    screen.line(f"\n{table(verdict, checkjobs='clean' if clean else 'BREACHES')}")
    for complaint in [*verdict.complaints, *complaints]:
        screen.line(f"WRONG: {complaint}")
    return verdict.exit_code


def checkjobs() -> tuple[list[str], bool]:
    """What the command complains of, and whether that is nothing."""
    said = StringIO()
    try:
        call_command("checkjobs", stdout=StringIO(), stderr=said)
    except CommandError as error:
        return [*said.getvalue().splitlines(), str(error)], False
    return [], True
