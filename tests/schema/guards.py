"""The guards of each statement: text of its file, and the check that notices when it is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from tests.db.guards_leases_free import limits_count_from_the_oldest_lease
from tests.db.guards_leases_limits import a_count_moves_on_with_each_claim
from tests.schema import (
    guards_claim,
    guards_looks,
    guards_loops,
    guards_operations,
    guards_queue,
    guards_settle,
    guards_verbs,
)

Connection = psycopg.Connection[Any]
Check = Callable[[Connection], None]

ENTRY_TOKEN = " AND lease_token IS NOT DISTINCT FROM result.lease_token"
CLAIM_TOKEN = " AND lease_token IS NOT DISTINCT FROM mine.lease_token"

SUSPECT = (
    "crashes >= 2 AND ",
    " AND lease_token IS NULL",
    " AND queue = ANY(%(queues)s::text[])",
    "parked IS NULL AND ",
    " AND run_at <= clock_timestamp()",
)

GUARDS: dict[str, list[tuple[str, Check]]] = {
    "claim": [
        ("lease_token IS NULL AND ", guards_claim.a_leased_entry_is_not_claimed),
        (" AND parked IS NULL", guards_claim.a_parked_entry_is_not_claimed),
        (" AND run_at <= now() + %(ahead)s::interval", guards_claim.an_entry_is_not_claimed_early),
        ("run_at <= now() OR NOT (", guards_claim.what_must_start_at_once_is_not_claimed_early),
        ("(run_at, job_id) > (pair.run_at, pair.job_id) AND ", guards_claim.a_claim_begins_at_its_mark),
        ("job_type = ANY(%(types)s::text[]) AND ", guards_claim.an_unknown_type_is_not_claimed),
        (" AND (crashes >= 2) = %(suspects)s", guards_claim.a_suspect_is_not_claimed_among_others),
        (" AND lease_expires_at > clock_timestamp()", guards_claim.a_dead_process_claims_nothing),
        (" WHERE id = %(process_id)s AND", guards_claim.a_dead_process_claims_nothing),
        ("WHEN NOT lock.held THEN 0", guards_claim.a_tenant_that_was_not_locked_gives_nothing),
        ("WHEN NOT lock.held THEN 0", guards_claim.a_queue_that_was_not_locked_gives_nothing),
        ("tenant.max_running - running.count", guards_claim.a_tenants_limit_counts_what_runs),
        ("queue.max_running - running.count", guards_claim.a_queues_limit_counts_what_runs),
        ("claim_no = (SELECT no FROM number),", guards_claim.what_is_claimed_counts_in_the_next_claim),
        (" AND entry.lease_token IS NOT NULL", guards_claim.what_waits_again_counts_against_no_limit),
        (" AND entry.process_id IS NOT NULL", guards_claim.what_waits_again_counts_against_no_limit),
        (" AND entry.tenant_id = share.tenant_id", guards_claim.what_others_run_counts_against_no_limit),
        (" AND entry.queue = %(queue)s", guards_claim.what_others_run_counts_against_no_limit),
        ("LIMIT (SELECT greatest(0, size) FROM room)", guards_claim.a_queues_limit_counts_what_runs),
        (" AND entry.claim_no >= share.oldest", limits_count_from_the_oldest_lease),
        (" AND entry.claim_no >= %(queue_oldest)s", limits_count_from_the_oldest_lease),
        ("coalesce(tenants.oldest, ", a_count_moves_on_with_each_claim),
        ("coalesce(room.oldest, ", a_count_moves_on_with_each_claim),
        (" OR row_number() OVER", guards_claim.what_may_wait_takes_no_thread_from_what_may_not),
        ("PARTITION BY at_once ", guards_claim.what_may_wait_takes_no_thread_from_what_may_not),
        ("<= %(free)s", guards_claim.a_last_attempt_is_never_claimed_ahead),
        (" WHERE taken", guards_claim.a_last_attempt_is_never_claimed_ahead),
        ("attempt + 1 >= max_attempts OR ", guards_claim.a_last_attempt_is_never_claimed_ahead),
        ("crashes > 0 OR ", guards_claim.who_was_in_a_crash_is_never_claimed_ahead),
        ("tenants.limited OR ", guards_claim.a_slot_of_a_tenant_is_not_held_by_what_waits_for_a_thread),
        (
            " OR (SELECT limited FROM room)",
            guards_claim.a_slot_of_a_queue_is_not_held_by_what_waits_for_a_thread,
        ),
        ("LIMIT tenants.allowed", guards_claim.a_share_is_a_share),
        ("        LIMIT tenants.allowed\n    ) entry", guards_claim.a_share_is_one_of_all_priorities),
        ("[tenants.first:tenants.last]", guards_claim.each_tenant_is_probed_for_its_own_pairs),
        (" AND id >= claimed.job_id", guards_claim.each_job_brings_its_own_payload),
        (" AND id <= claimed.job_id", guards_claim.what_has_no_row_brings_no_payload),
    ],
    "payloads": [
        (" AND id >= claimed.id", guards_claim.each_job_brings_its_own_payload),
        (" AND id <= claimed.id", guards_claim.what_has_no_row_brings_no_payload),
    ],
    "lock_tenants": [
        ("id = ANY(%(limited)s::bigint[]) AND ", guards_claim.a_claim_locks_the_limited_alone),
        (" AND max_running IS NOT NULL", guards_claim.a_claim_locks_the_limited_alone),
    ],
    "lock_queue": [("name = %(queue)s AND ", guards_claim.a_claim_locks_its_own_queue_alone)],
    "hop": [
        ("lease_token IS NULL AND ", guards_looks.what_runs_is_not_hopped_to),
        (" AND parked IS NULL", guards_looks.what_is_parked_is_not_hopped_to),
        ("queue = queue.name AND ", guards_looks.another_queue_is_not_hopped_to),
    ],
    "look": [
        ("process_id IS NULL AND ", guards_looks.what_runs_wakes_nobody),
        (" AND parked IS NULL", guards_looks.what_is_parked_wakes_nobody),
        ("queue = queue.name AND ", guards_looks.another_queue_wakes_nobody),
        ("run_at > %(since)s AND ", guards_looks.what_was_looked_at_is_not_read_again),
        (" AND (crashes >= 2) = %(suspects)s", guards_looks.suspects_are_not_told_to_others),
        (" AND run_at > now()", guards_looks.what_must_start_at_once_is_not_taken_for_unknown),
        ("attempt + 1 >= max_attempts OR ", guards_looks.what_must_start_at_once_is_told_for_its_own_time),
        (" OR crashes > 0", guards_looks.what_must_start_at_once_is_told_for_its_own_time),
    ],
    "sweep": [
        ("lease_token IS NULL AND ", guards_looks.what_runs_is_not_swept),
        (" AND parked IS NULL", guards_looks.what_is_parked_is_not_swept),
        ("queue = pair.queue AND ", guards_looks.another_queue_is_not_swept),
        ("tenant_id = pair.tenant_id AND ", guards_looks.another_tenant_is_not_swept),
        (" AND priority = pair.priority::smallint", guards_looks.another_priority_is_not_swept),
        (
            "(run_at, job_id) > (pair.run_at, pair.job_id) AND ",
            guards_looks.what_lies_before_the_floor_is_not_swept,
        ),
    ],
    "free": [
        ("tenant.max_running > (", guards_looks.who_is_full_is_not_free),
        (" AND entry.lease_token IS NOT NULL", guards_looks.who_has_a_slot_is_free),
        ("entry.tenant_id = tied.id AND ", guards_looks.who_has_a_slot_is_free),
        ("tenant.max_running IS NULL OR ", guards_looks.who_has_no_limit_is_free),
        (" AND entry.claim_no >= tied.oldest", guards_looks.who_is_free_is_counted_from_the_mark),
    ],
    "suspects": [(text, guards_looks.only_a_suspect_that_may_run_is_one) for text in SUSPECT],
    "complete": [
        (ENTRY_TOKEN, guards_settle.a_stolen_lease_completes_nothing),
        (" AND expires_at IS NULL", guards_settle.a_key_for_a_period_outlives_its_job),
        (
            "job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND ",
            guards_settle.a_key_until_done_goes_with_its_job,
        ),
        (
            "DELETE FROM jobs_queueentry WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine))",
            guards_settle.what_has_ended_waits_no_more,
        ),
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
        ("process_id IS NULL AND ", guards_queue.what_runs_is_not_parked),
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
    "move_timers": [
        ("coalesce(wanted.priority, timer.priority)", guards_operations.another_queue_leaves_the_priority),
        ("coalesce(wanted.queue, timer.queue)", guards_operations.another_priority_leaves_the_queue),
    ],
    "move_entries": [
        (" AND entry.lease_token IS NULL", guards_operations.a_running_job_is_not_moved),
        ("greatest(entry.run_at, clock_timestamp())", guards_operations.a_moved_entry_runs_from_now_on),
        ("entry.run_at, clock_timestamp()", guards_operations.an_entry_that_is_not_due_is_moved_to_no_earlier_time),
        (", action_id = %(action_id)s", guards_operations.a_moved_entry_bears_the_number_of_the_command),
    ],
    "count_ended": [
        ("outcome.attempt = 1 AND ", guards_operations.lateness_is_that_of_the_first_attempt),
        (" AND outcome.state = 'completed'", guards_operations.a_failed_job_is_late_once),
        (" AND outcome.action_id IS NULL", guards_operations.what_an_operator_moved_is_not_late),
        (" AND outcome.finished_at < %(end)s", guards_operations.a_minute_is_no_longer_than_a_minute),
        ("outcome.finished_at >= %(start)s AND ", guards_operations.a_minute_begins_at_its_beginning),
    ],
    "keep_rollups": [("greatest(kept.completed, excluded.completed)", guards_operations.counts_never_shrink)],
    "sum_hour": [
        (" AND at < %(end)s", guards_operations.a_minute_of_another_hour_is_not_in_the_sum),
        ("at >= %(start)s AND ", guards_operations.a_minute_of_another_hour_is_not_in_the_sum),
        ("step = 60 AND ", guards_operations.a_minute_of_another_hour_is_not_in_the_sum),
    ],
    "schedule_entry": [(", clock_timestamp()", guards_verbs.an_entry_starts_no_earlier_than_it_was_inserted)],
}
REPLACED = {
    "coalesce(wanted.priority, timer.priority)": "coalesce(wanted.priority, 0)",
    "coalesce(wanted.queue, timer.queue)": "coalesce(wanted.queue, '')",
    "greatest(entry.run_at, clock_timestamp())": "entry.run_at",
    "entry.run_at, clock_timestamp()": "clock_timestamp()",
    "greatest(kept.completed, excluded.completed)": "excluded.completed",
    "due_at, clock_timestamp()": "clock_timestamp()",
    "gone.due_at, clock_timestamp()": "clock_timestamp()",
    "run_at <= now() OR NOT (": "true OR NOT (",
    "tenant.max_running - running.count": "tenant.max_running",
    "queue.max_running - running.count": "queue.max_running",
    "coalesce(tenants.oldest, ": "coalesce(NULL, ",
    "coalesce(room.oldest, ": "coalesce(NULL, ",
    " OR row_number() OVER": " AND row_number() OVER",
    "<= %(free)s": ">= 0 * %(free)s",
    " WHERE id = %(process_id)s AND": " WHERE",
    "        LIMIT tenants.allowed\n    ) entry": "    ) entry",
    "tenant.max_running > (": "0 <= (",
    "DELETE FROM jobs_queueentry WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine))": (
        "DELETE FROM jobs_queueentry WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) OR lease_token IS NULL"
    ),
}
"""What cannot simply be removed."""
