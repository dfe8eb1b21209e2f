"""The guards of each statement: text of its file, and the check that notices when it is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from tests.db.guards_leases_limits import a_count_moves_on_with_each_claim
from tests.schema import (
    guards_claim,
    guards_held,
    guards_keys,
    guards_looks,
    guards_loops,
    guards_operations,
    guards_queue,
    guards_relay,
    guards_rules,
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

WAITS = "WHEN mine.wait IS NOT NULL AND entry.concurrency_key IS NOT NULL THEN 'key'"
KEYED = "WHEN concurrency_key IS NOT NULL THEN 'key'"

LIVE = """ANY(
            SELECT unnest(types) FROM jobs_process WHERE ended_at IS NULL AND lease_expires_at > clock_timestamp()
        )"""
HELD = '            AND (job_type = ANY(%(types)s::text[]) OR "group" = ANY(%(groups)s::text[]))\n'

GUARDS: dict[str, list[tuple[str, Check]]] = {
    **guards_rules.RULES,
    "claim": [
        (
            "                AND job_type <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = 'type'))\n",
            guards_held.a_held_type_is_not_claimed,
        ),
        (
            '                AND ("group" IS NULL OR "group" <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = \'group\')))\n',
            guards_held.a_held_group_is_not_claimed,
        ),
        ('"group" IS NULL OR ', guards_held.what_has_no_group_is_claimed),
        (" AND (until IS NULL OR until > now())\n),\npick", guards_held.a_hold_that_has_ended_holds_nothing),
        (
            "drained_at IS NULL AND scope IN ('type', 'group') AND ",
            guards_held.a_hold_that_is_over_holds_nothing,
        ),
        (
            " AND since <= now() AND (until IS NULL OR until > now())\n),\npick",
            guards_held.a_hold_that_has_not_begun_holds_nothing,
        ),
        (" WHERE scope = 'type'", guards_held.the_name_of_another_kind_holds_nothing),
        (" WHERE scope = 'group'", guards_held.the_name_of_another_kind_holds_nothing),
        ("lease_token IS NULL AND ", guards_claim.a_leased_entry_is_not_claimed),
        (" AND parked IS NULL", guards_claim.a_parked_entry_is_not_claimed),
        (" AND run_at <= now() + %(ahead)s::interval", guards_claim.an_entry_is_not_claimed_early),
        ("run_at <= now() OR NOT (", guards_claim.what_must_start_at_once_is_not_claimed_early),
        ("(run_at, job_id) > (pair.run_at, pair.job_id) AND ", guards_claim.a_claim_begins_at_its_mark),
        (" AND (run_at, job_id) <= (pair.until_at, pair.until_id)", guards_looks.a_claim_ends_at_its_fence),
        ("job_type = ANY(%(types)s::text[]) AND ", guards_claim.an_unknown_type_is_not_claimed),
        (" AND (crashes >= 2) = %(suspects)s", guards_claim.a_suspect_is_not_claimed_among_others),
        ("claim_no = (SELECT no FROM number),", guards_claim.what_is_claimed_counts_in_the_next_claim),
        ("LIMIT (SELECT greatest(0, size) FROM room)", guards_claim.a_queues_limit_counts_what_runs),
        ("coalesce(tenants.oldest, ", a_count_moves_on_with_each_claim),
        ("coalesce(oldest, ", a_count_moves_on_with_each_claim),
        (" OR row_number() OVER", guards_claim.what_may_wait_takes_no_thread_from_what_may_not),
        ("PARTITION BY at_once ", guards_claim.what_may_wait_takes_no_thread_from_what_may_not),
        ("<= %(free)s", guards_claim.a_last_attempt_is_never_claimed_ahead),
        (" WHERE taken", guards_claim.a_last_attempt_is_never_claimed_ahead),
        ("attempt + 1 >= max_attempts OR ", guards_claim.a_last_attempt_is_never_claimed_ahead),
        ("crashes > 0 OR ", guards_claim.who_was_in_a_crash_is_never_claimed_ahead),
        ("tenants.limited OR ", guards_claim.a_slot_of_a_tenant_is_not_held_by_what_waits_for_a_thread),
        (
            " OR (SELECT limited OR draining FROM room)",
            guards_claim.a_slot_of_a_queue_is_not_held_by_what_waits_for_a_thread,
        ),
        ("LIMIT tenants.allowed", guards_claim.a_share_is_a_share),
        ("        LIMIT tenants.allowed\n    ) entry", guards_claim.a_share_is_one_of_all_priorities),
        ("[slice.first:slice.last]", guards_claim.each_tenant_is_probed_for_its_own_pairs),
        (" AND id >= told.job_id", guards_claim.each_job_brings_its_own_payload),
        (" AND id <= told.job_id", guards_claim.what_has_no_row_brings_no_payload),
    ],
    "backlog": [
        (" AND run_at <= %(until)s\n        UNION", guards_held.what_came_after_is_no_backlog),
        (" AND run_at <= %(until)s\n            AND tenant", guards_held.what_came_after_is_no_backlog),
        ("WHERE %(scope)s <> 'queue' OR queues.queue = %(key)s", guards_held.the_backlog_of_another_is_none),
        (
            "AND tenant_id = (SELECT id FROM jobs_tenant WHERE slug = %(key)s)",
            guards_held.the_backlog_of_another_is_none,
        ),
    ],
    "payloads": [
        (" AND id >= claimed.id", guards_claim.each_job_brings_its_own_payload),
        (" AND id <= claimed.id", guards_claim.what_has_no_row_brings_no_payload),
    ],
    "hop": [
        ("lease_token IS NULL AND ", guards_looks.what_runs_is_not_hopped_to),
        (" AND parked IS NULL", guards_looks.what_is_parked_is_not_hopped_to),
        ("queue = queue.name AND ", guards_looks.another_queue_is_not_hopped_to),
        *(
            (text, guards_looks.strangers_behind_a_known_head_are_noticed_when_they_may_run)
            for text in (
                "process_id IS NULL AND ",
                "queue = queue.name AND process_id IS NULL AND ",
                " AND parked IS NULL AND run_at <= now()",
                " AND run_at <= now()\n            ORDER",
                "\n        WHERE job_type <> ALL(%(types)s::text[])",
            )
        ),
    ],
    "fence": [
        (text, guards_looks.a_stride_counts_what_a_claim_would_read)
        for text in (
            "queue = %(queue)s AND ",
            "lease_token IS NULL AND ",
            " AND parked IS NULL",
            "tenant_id = pair.tenant_id AND ",
            " AND priority = pair.priority::smallint",
            "(run_at, job_id) > (pair.run_at, pair.job_id) AND ",
            " AND run_at <= now()",
            " - 1",
        )
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
    "suspects": [(text, guards_looks.only_a_suspect_that_may_run_is_one) for text in SUSPECT],
    "relay": guards_relay.RELAY,
    "parts/ended": [
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
        (ENTRY_TOKEN, guards_relay.for_a_place_that_was_lost_nobody_starts),
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
    "put_back": [
        (" + mine.crashes", guards_settle.a_crash_is_counted),
        (WAITS, guards_keys.who_waits_for_another_attempt_gives_up_its_place),
        ("mine.wait IS NOT NULL AND ", guards_keys.who_is_released_keeps_its_place),
    ],
    "admit": [
        ("count(*) AS held", guards_keys.one_place_is_given_once),
        (" AND entry.parked IS NULL", guards_keys.who_waits_takes_no_place),
        ("entry.tenant_id = key.tenant_id AND ", guards_keys.places_of_other_keys_do_not_count),
        (" AND entry.concurrency_key = key.name", guards_keys.places_of_other_keys_do_not_count),
        ("least(key.least, coalesce(of_type.most, 1)) AS most", guards_keys.who_runs_alone_is_not_joined),
        (" AND run_at <= statement_timestamp() + interval '10 ms'", guards_keys.nobody_is_admitted_early),
        ("            ORDER BY run_at, job_id\n", guards_keys.who_waits_longest_is_first),
        (" + interval '10 ms'", guards_keys.what_is_due_now_is_admitted),
        ("ORDER BY priority DESC", guards_keys.the_urgent_are_first),
        (" AND priority < level.priority", guards_keys.lower_priorities_come_after),
        (", coalesce(of_type.most, 1)) AS most", guards_keys.a_type_that_allows_one_runs_alone),
        ("min(most) OVER (PARTITION BY ord ORDER BY nth)", guards_keys.nobody_is_passed_by_in_the_line),
        (" WHERE taken", guards_keys.a_type_that_allows_one_runs_alone),
        ("run_at = greatest(run_at, clock_timestamp())", guards_keys.what_is_admitted_runs_from_now_on),
        ("parked = 'key' AND ", guards_keys.who_waits_takes_no_place),
    ],
    "lock_keys": [("key.hash", guards_keys.locks_are_of_these_keys)],
    "keys_due": [
        ("run_at > %(since)s AND ", guards_keys.what_was_seen_before_is_not_told_again),
        (" AND run_at <= %(now)s", guards_keys.what_comes_is_told_by_its_time_alone),
        ("parked = 'key' AND ", guards_keys.who_has_a_place_is_not_told),
    ],
    "keys_waiting": [
        ("count(*) FROM", guards_keys.a_full_key_is_not_swept),
        (" AND held.parked IS NULL", guards_keys.a_key_with_room_is_swept),
        ("held.tenant_id = hop.tenant_id AND ", guards_keys.a_key_with_room_is_swept),
        (" AND held.concurrency_key = hop.concurrency_key", guards_keys.a_key_with_room_is_swept),
        (" AND waiting.run_at <= %(now)s", guards_keys.who_waits_for_his_time_is_not_swept),
    ],
    "park_held+parts/queues": [
        ("process_id IS NULL AND |process_id IS NULL AND ", guards_held.what_runs_is_not_parked),
    ],
    "parts/queues": [(" AND queue > queues.queue", guards_held.the_queues_of_all_are_looked_into_once)],
    "park_held": [
        (
            " AND parked IS NULL\n            AND run_at",
            guards_held.what_is_parked_for_another_reason_stays_so,
        ),
        (" AND run_at <= %(now)s", guards_held.what_is_not_due_is_not_parked),
        ("run_at > %(since)s AND ", guards_held.what_was_looked_at_is_not_read_again),
        (HELD, guards_held.other_types_and_groups_are_not_parked),
        (" UNION ALL SELECT place FROM in_line", guards_held.who_waits_for_a_key_is_parked),
        (
            "process_id IS NULL AND parked = 'key' AND run_at",
            guards_held.what_is_parked_for_another_reason_stays_so,
        ),
    ],
    "unpark_held": [
        ("parked = 'hold'", guards_held.what_is_held_alone_comes_back),
        ("AND (%(everything)s OR ", guards_held.what_the_hold_did_not_hold_stays),
        ("job_type <> ALL(%(held_types)s::text[]) AND ", guards_held.what_another_hold_holds_stays),
        (
            " AND coalesce(\"group\", '') <> ALL(%(held_groups)s::text[])",
            guards_held.what_another_hold_holds_stays,
        ),
        ("coalesce(\"group\", '')", guards_held.what_has_no_group_comes_back),
        (KEYED, guards_held.who_comes_back_with_a_key_waits_for_it),
        ("run_at = greatest(run_at, clock_timestamp())", guards_held.who_comes_back_runs_from_now_on),
        ("priority DESC, ", guards_held.the_urgent_come_back_first),
        ("run_at, job_id", guards_held.who_waits_longest_comes_back_first),
    ],
    "drain": [
        ("least(%(rate)s, ", guards_held.a_rate_is_kept),
        ("bucket.tokens + ", guards_held.a_rate_is_kept),
        (",\n    refilled_at = clock_timestamp()", guards_held.a_rate_is_kept),
    ],
    "key_breaches": [
        ("count > most AND ", guards_keys.a_full_key_is_sound),
        (
            " AND (changed_at IS NULL OR last_at > changed_at)",
            guards_keys.who_was_admitted_before_the_number_was_lowered_is_sound,
        ),
        ("WHERE coalesce(held.count, 0) < waiting.most", guards_keys.a_full_key_is_sound),
        (" - interval '30 seconds'", guards_keys.who_came_just_now_is_sound),
        (LIVE, guards_keys.who_waits_for_a_worker_is_sound),
    ],
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
        ("WHEN job.concurrency_key IS NOT NULL THEN 'key'", guards_keys.what_is_born_with_a_key_waits_for_it),
    ],
    "reschedule_entries": [
        (" AND lease_token IS NULL", guards_verbs.a_running_job_is_not_rescheduled),
        ("parked IS NULL AND ", guards_keys.a_reschedule_lifts_no_other_reason),
        (" AND concurrency_key IS NOT NULL THEN 'key'", guards_keys.who_is_rescheduled_gives_up_its_place),
    ],
    "reschedule_timers": [(KEYED, guards_keys.what_is_born_with_a_key_waits_for_it)],
    "dispatch": [
        ("due_at < %(until)s AND ", guards_loops.a_timer_is_not_dispatched_early),
        (" AND job_id <> ALL(%(aside)s::uuid[])", guards_loops.what_was_set_aside_is_left),
        ("due_at, clock_timestamp()", guards_loops.a_late_timer_runs_from_now_on),
        (KEYED, guards_keys.what_is_born_with_a_key_waits_for_it),
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
        (
            "entry.run_at, clock_timestamp()",
            guards_operations.an_entry_that_is_not_due_is_moved_to_no_earlier_time,
        ),
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
    "schedule_entry": [
        (", clock_timestamp()", guards_verbs.an_entry_starts_no_earlier_than_it_was_inserted),
        ("WHEN %(concurrency_key)s IS NOT NULL THEN 'key'", guards_keys.what_is_born_with_a_key_waits_for_it),
    ],
}
REPLACED = {
    " AND run_at <= now()\n            ORDER": "\n            ORDER",
    "coalesce(wanted.priority, timer.priority)": "coalesce(wanted.priority, 0)",
    "coalesce(wanted.queue, timer.queue)": "coalesce(wanted.queue, '')",
    "greatest(entry.run_at, clock_timestamp())": "entry.run_at",
    "entry.run_at, clock_timestamp()": "clock_timestamp()",
    "greatest(kept.completed, excluded.completed)": "excluded.completed",
    " AND (until IS NULL OR until > now())\n),\npick": "\n),\npick",
    " AND since <= now() AND (until IS NULL OR until > now())\n),\npick": "\n),\npick",
    " AND run_at <= %(until)s\n        UNION": "\n        UNION",
    " AND run_at <= %(until)s\n            AND tenant": " AND tenant",
    " AND parked IS NULL\n            AND run_at": " AND run_at",
    " AND queue > queues.queue": " AND false",
    "process_id IS NULL AND parked = 'key' AND run_at": "process_id IS NULL AND run_at",
    "parked = 'hold'": "lease_token IS NULL",
    "AND (%(everything)s OR ": "AND (true OR %(everything)s OR ",
    "coalesce(\"group\", '')": '"group"',
    "run_at, job_id": "run_at DESC, job_id",
    "least(%(rate)s, ": "greatest(0, ",
    WAITS: "WHEN false THEN 'key'",
    KEYED: "WHEN false THEN 'key'",
    "WHEN job.concurrency_key IS NOT NULL THEN 'key'": "WHEN false THEN 'key'",
    "WHEN %(concurrency_key)s IS NOT NULL THEN 'key'": "WHEN false THEN 'key'",
    " AND concurrency_key IS NOT NULL THEN 'key'": " AND concurrency_key IS NOT NULL THEN NULL",
    "count(*) FROM": "0 FROM",
    "count(*) AS held": "0 AS held",
    "least(key.least, coalesce(of_type.most, 1)) AS most": "coalesce(of_type.most, 1) AS most",
    "            ORDER BY run_at, job_id\n": "            ORDER BY run_at DESC, job_id\n",
    "ORDER BY priority DESC": "ORDER BY priority",
    " AND priority < level.priority": " AND false",
    ", coalesce(of_type.most, 1)) AS most": ", (SELECT most FROM most)) AS most",
    "min(most) OVER (PARTITION BY ord ORDER BY nth)": "most",
    "run_at = greatest(run_at, clock_timestamp())": "run_at = run_at",
    "key.hash": "key.hash + 1",
    LIVE: "ANY(ARRAY['test.noop'])",
    **guards_rules.REPLACED_RULES,
    **guards_relay.REPLACED_RELAY,
    "tenant.max_running - running.count": "tenant.max_running",
    "queue.max_running - running.count": "queue.max_running",
    "due_at, clock_timestamp()": "clock_timestamp()",
    "gone.due_at, clock_timestamp()": "clock_timestamp()",
    "run_at <= now() OR NOT (": "true OR NOT (",
    "coalesce(tenants.oldest, ": "coalesce(NULL, ",
    "coalesce(oldest, ": "coalesce(NULL, ",
    " OR row_number() OVER": " AND row_number() OVER",
    "<= %(free)s": ">= 0 * %(free)s",
    " WHERE id = %(process_id)s AND": " WHERE",
    "        LIMIT tenants.allowed\n    ) entry": "    ) entry",
    "DELETE FROM jobs_queueentry WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine))": (
        "DELETE FROM jobs_queueentry WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) OR lease_token IS NULL"
    ),
}
"""What cannot simply be removed."""
