"""Every guard of a statement is needed: without it, its check reports a breach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, transaction

import jobs.sql
from tests.schema import guards_claim, guards_loops, guards_queue, guards_settle, guards_verbs

Connection = psycopg.Connection[Any]
Check = Callable[[Connection], None]

ENTRY_TOKEN = " AND lease_token IS NOT DISTINCT FROM result.lease_token"
CLAIM_TOKEN = " AND lease_token IS NOT DISTINCT FROM mine.lease_token"

GUARDS: dict[str, list[tuple[str, Check]]] = {
    "claim": [
        ("lease_token IS NULL AND ", guards_claim.a_leased_entry_is_not_claimed),
        (" AND parked IS NULL", guards_claim.a_parked_entry_is_not_claimed),
        (" AND run_at <= now()", guards_claim.an_entry_is_not_claimed_early),
        ("job_type = ANY(%(types)s::text[]) AND ", guards_claim.an_unknown_type_is_not_claimed),
        (" AND (crashes >= %(suspect)s) = %(suspects)s", guards_claim.a_suspect_is_not_claimed_among_others),
        (" AND lease_expires_at > clock_timestamp()", guards_claim.a_dead_process_claims_nothing),
        (
            "WHEN pair.tenant_id <> ALL(%(locked)s::bigint[]) THEN 0",
            guards_claim.a_tenant_that_was_not_locked_gives_nothing,
        ),
        ("WHEN NOT %(queue_locked)s THEN 0", guards_claim.a_queue_that_was_not_locked_gives_nothing),
        (" - running.count", guards_claim.a_tenants_limit_counts_what_runs),
        ("count(*) FROM jobs_queueentry", guards_claim.a_queues_limit_counts_what_runs),
        (" AND entry.process_id IS NOT NULL", guards_claim.what_waits_counts_against_no_limit),
        (" OR place <= %(free)s", guards_claim.a_last_attempt_is_never_claimed_ahead),
        ("attempt + 1 >= max_attempts OR ", guards_claim.a_last_attempt_is_never_claimed_ahead),
        ("LIMIT tenants.allowed", guards_claim.a_share_is_a_share),
    ],
    "end": [
        (ENTRY_TOKEN, guards_settle.a_stolen_lease_completes_nothing),
        (" AND expires_at IS NULL", guards_settle.a_key_for_a_period_outlives_its_job),
        (
            "job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND ",
            guards_settle.a_key_until_done_goes_with_its_job,
        ),
    ],
    "lock_claims+put_back": [
        (CLAIM_TOKEN + "|" + ENTRY_TOKEN, guards_settle.a_stolen_lease_puts_nothing_back)
    ],
    "put_back": [(" + mine.crashes", guards_settle.a_crash_is_counted)],
    "settled_before": [
        (" AND lease_token = mine.lease_token", guards_settle.a_stolen_lease_is_called_fenced)
    ],
    "park": [
        (" AND run_at <= now()", guards_queue.what_is_not_due_is_not_parked),
        ("lease_token IS NULL AND ", guards_queue.what_runs_is_not_parked),
        (" AND lease_expires_at > clock_timestamp()", guards_queue.the_dead_know_no_types),
        ("queue = %(queue)s AND ", guards_queue.another_queue_is_not_parked),
    ],
    "unpark": [
        ("parked = 'type' AND ", guards_queue.what_waits_for_another_reason_is_not_unparked),
        (" AND job_type = ANY(%(types)s::text[])", guards_queue.another_type_is_not_unparked),
    ],
    "orphans": [
        (
            "    AND (process.id IS NULL OR process.lease_expires_at <= clock_timestamp())",
            guards_settle.the_living_are_not_rescued,
        ),
        ("process.id IS NULL OR ", guards_settle.what_a_deleted_process_held_is_rescued),
    ],
    "claims_of": [("WHERE process_id = %(process_id)s", guards_settle.a_supervisor_rescues_its_own_alone)],
    "cancel_entries": [
        (" WHERE NOT leased", guards_verbs.a_running_job_is_not_cancelled_from_outside),
    ],
    "retry": [
        ("      AND state IN ('failed', 'cancelled')", guards_verbs.a_completed_job_is_not_retried),
        ("gone.attempt + ", guards_verbs.attempt_numbers_never_repeat),
        ("gone.due_at, clock_timestamp()", guards_verbs.a_retried_job_does_not_run_early),
    ],
    "reschedule_entries": [(" AND lease_token IS NULL", guards_verbs.a_running_job_is_not_rescheduled)],
    "dispatch": [
        ("due_at < %(until)s AND ", guards_loops.a_timer_is_not_dispatched_early),
        (" AND job_id <> ALL(%(aside)s::uuid[])", guards_loops.what_was_set_aside_is_left),
        ("due_at, clock_timestamp()", guards_loops.a_late_timer_runs_from_now_on),
    ],
    "timer_with_entry": [
        (" WHERE job_id = timer.job_id", guards_loops.only_what_has_an_entry_is_set_aside),
    ],
    "take_keys": [
        ("ON CONFLICT (tenant_id, job_type, key) DO NOTHING", guards_verbs.a_held_key_is_not_taken)
    ],
    "take_over_keys": [
        (
            "  AND held.expires_at <= clock_timestamp()",
            guards_verbs.a_key_whose_period_lasts_is_not_taken_over,
        ),
        ("held.tenant_id = wanted.tenant_id AND ", guards_verbs.an_expired_key_of_another_tenant_stays),
        (" AND held.job_type = wanted.job_type", guards_verbs.an_expired_key_of_another_type_stays),
        (" AND held.key = wanted.key", guards_verbs.another_expired_key_stays),
    ],
    "next_run": [
        (" AND lease_token IS NULL", guards_queue.what_runs_wakes_nobody),
        (" AND parked IS NULL", guards_queue.what_is_parked_wakes_nobody),
    ],
    "ticks": [("ON CONFLICT DO NOTHING", guards_loops.a_slot_is_ticked_once)],
    "due_definitions": [
        ("definition.enabled AND ", guards_loops.what_is_disabled_does_not_fire),
        (" AND definition.broken = ''", guards_loops.what_is_broken_is_left_alone),
        (" AND definition.look_at <= %(now)s", guards_loops.what_is_not_to_be_looked_at_yet_is_left),
    ],
    "next_look": [
        (" AND look_at > %(now)s", guards_loops.what_is_locked_now_does_not_shorten_the_sleep),
        ("enabled AND ", guards_loops.what_is_disabled_wakes_nobody),
    ],
    "open_revisions": [
        ("WHERE NOT revision.settled", guards_loops.a_rule_that_was_told_of_is_not_told_of_again)
    ],
    "retell_ticks": [
        (" AND tick.job_id IS NULL", guards_loops.what_has_run_is_not_told_anew),
        ("tick.outcome IN ('waiting', 'backfilled') AND ", guards_loops.what_was_dropped_is_not_told_anew),
    ],
    "advance_definitions": [("definition.last_slot, ", guards_loops.a_cursor_never_goes_back)],
    "schedule_entry": [(", clock_timestamp()", guards_verbs.an_entry_starts_no_earlier_than_it_was_inserted)],
}
REPLACED = {
    "due_at, clock_timestamp()": "clock_timestamp()",
    "gone.due_at, clock_timestamp()": "clock_timestamp()",
    "count(*) FROM jobs_queueentry": "0 * count(*) FROM jobs_queueentry",
}
"""What cannot simply be removed."""

CASES = [(files, text, breaks) for files, guards in GUARDS.items() for text, breaks in guards]


class Mutated:
    """Stands for `importlib.resources` in jobs.sql: the files, without a guard."""

    def __init__(self, removed: dict[str, str]) -> None:
        self.removed, self.name = removed, ""

    def files(self, package: str) -> Mutated:
        return self

    def joinpath(self, name: str) -> Mutated:
        self.name = name.removesuffix(".sql")
        return self

    def read_text(self, encoding: str) -> str:
        text = (Path(jobs.sql.__file__).parent / f"{self.name}.sql").read_text(encoding)
        if removed := self.removed.get(self.name):
            assert removed in text, f"{self.name} has no {removed!r}: it was changed, so change the table"
            text = text.replace(removed, REPLACED.get(removed, ""))
        return text


@pytest.fixture
def _fresh() -> Iterator[None]:
    def forget() -> None:
        jobs.sql.load.cache_clear()
        jobs.sql.for_day.cache_clear()

    forget()
    yield
    forget()


@pytest.mark.parametrize(
    "breaks", dict.fromkeys(case[2] for case in CASES), ids=lambda breaks: breaks.__name__
)
def test_the_check_passes_with_its_guard(here: Connection, breaks: Check) -> None:
    breaks(here)


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(
    ("files", "text", "breaks"), CASES, ids=[f"{files}: {text.strip()[:40]}" for files, text, _ in CASES]
)
def test_without_the_guard_the_check_reports_a_breach(
    here: Connection, files: str, text: str, breaks: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = text.split("|") if "+" in files else [text]
    removed = dict(zip(files.split("+"), texts, strict=True))
    monkeypatch.setattr(jobs.sql, "resources", Mutated(removed))
    with pytest.raises((AssertionError, DatabaseError, psycopg.Error)) as caught, transaction.atomic():
        breaks(here)
    assert not isinstance(caught.value, psycopg.errors.SyntaxError), "the mutant must be a legal statement"
    assert not isinstance(caught.value.__cause__, psycopg.errors.SyntaxError)
