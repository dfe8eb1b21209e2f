-- claim: take entries of the chosen tenants, of each its share over its pairs, the highest priority first, each pair
-- from its mark on to where its stride ends, under the claim's lease token; with what was asked for, where the job is due today (its leaf by
-- name). A tenant's pairs are a slice of the three arrays; a lower one is only probed when the higher ones ran dry.
-- Guards: not leased, not parked, due by the server's clock, a type this worker knows, its type and group not held, our own
-- process still alive;
-- a limited tenant or queue that we did not lock gives nothing, so a limit set since the last look is never broken.
-- The pick is MATERIALIZED: a sub-select in UPDATE … WHERE id IN may run again and overclaim. The row lock sits inside
-- the inner LIMIT, so nothing is locked in vain; SKIP LOCKED, so two claimers never wait for each other.
-- Written by ctid: joined by key, a plan made while the statistics say "empty" walks the whole table once a row (25 s
-- for 500 of 50,000). A row that was changed after our snapshot is locked but not found by its new ctid: next time.
-- An entry that must start at once (its last attempt, it was in a crash, or it takes up a slot of a limit) is taken
-- for a free thread only, and not before its time; others up to `ahead` before it, and their worker holds them back. What was picked and not taken is told too: the mark must not pass it.
-- Which were taken is asked by IN, a hashed list whatever the statistics say: joined, they were once compared each with
-- each (20 us a job).
-- A large payload is left for fetch, which minds how much a process holds of them; what is stored in little may be large.
-- Committed asynchronously: a crash of the server may lose a claim, and the job is claimed again.
WITH number AS MATERIALIZED (
    SELECT nextval('jobs_claim_no') AS no, set_config('synchronous_commit', 'off', true)
),
{rules}
held_kinds AS MATERIALIZED (
    SELECT scope, key FROM jobs_hold
    WHERE drained_at IS NULL AND scope IN ('type', 'group') AND since <= now() AND (until IS NULL OR until > now())
),
pick AS MATERIALIZED (
    SELECT entry.*, tenants.ord
    FROM tenants
    CROSS JOIN LATERAL (
        SELECT (%(firsts)s::bigint[])[tenants.ord] AS first, (%(lasts)s::bigint[])[tenants.ord] AS last
    ) slice
    CROSS JOIN LATERAL (
        SELECT entry.*, pair.priority, pair.ord AS pair
        FROM unnest(
            (%(priorities)s::bigint[])[slice.first:slice.last], (%(run_ats)s::timestamptz[])[slice.first:slice.last],
            (%(job_ids)s::uuid[])[slice.first:slice.last], (%(until_ats)s::timestamptz[])[slice.first:slice.last],
            (%(until_ids)s::uuid[])[slice.first:slice.last]
        ) WITH ORDINALITY pair(priority, run_at, job_id, until_at, until_id, ord)
        CROSS JOIN LATERAL (
            SELECT ctid, run_at, job_id, due_at, job_type, attempt + 1 AS attempt, max_attempts, crashes, "group",
                concurrency_key,
                attempt + 1 >= max_attempts OR crashes > 0 OR tenants.limited OR (SELECT limited OR draining FROM room) AS at_once
            FROM jobs_queueentry
            WHERE queue = %(queue)s AND lease_token IS NULL AND parked IS NULL
                AND tenant_id = tenants.tenant_id AND priority = pair.priority::smallint
                AND (run_at, job_id) > (pair.run_at, pair.job_id) AND (run_at, job_id) <= (pair.until_at, pair.until_id)
                AND run_at <= now() + %(ahead)s::interval
                AND (run_at <= now() OR NOT (
                    attempt + 1 >= max_attempts OR crashes > 0 OR tenants.limited OR (SELECT limited OR draining FROM room)
                ))
                AND job_type = ANY(%(types)s::text[]) AND (crashes >= 2) = %(suspects)s
                AND job_type <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = 'type'))
                AND ("group" IS NULL OR "group" <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = 'group')))
            ORDER BY run_at, job_id
            LIMIT tenants.allowed
            FOR UPDATE SKIP LOCKED
        ) entry
        LIMIT tenants.allowed
    ) entry
    WHERE tenants.allowed > 0
    LIMIT (SELECT greatest(0, size) FROM room)
),
fit AS MATERIALIZED (
    SELECT *, NOT at_once OR row_number() OVER (PARTITION BY at_once ORDER BY ord, pair) <= %(free)s AS taken
    FROM pick
),
claimed AS (
    UPDATE jobs_queueentry entry
    SET lease_token = %(token)s, process_id = %(process_id)s, claim_no = (SELECT no FROM number),
        claimed_at = clock_timestamp(), attempt = attempt + 1
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM fit WHERE taken))
    RETURNING entry.job_id
),
told AS MATERIALIZED (
    SELECT *, job_id IN (SELECT job_id FROM claimed) AS claimed FROM fit
)
{spent}
SELECT tenants.tenant_id, tenants.allowed, tenants.held, tenants.limited, tenants.weight,
    coalesce(tenants.oldest, (SELECT no FROM number)), tenants.slug, tenants.wait,
    nullif(tenants.noisy_exempt, false), room.told,
    told.priority, told.run_at, told.job_id, told.claimed,
    told.job_type, told.attempt, told.max_attempts, told.crashes, told."group", told.concurrency_key,
    CASE WHEN octet_length(job.payload) <= 16384 THEN job.payload END
FROM tenants
LEFT JOIN (
    SELECT ROW(
        size, limited, draining, coalesce(oldest, (SELECT no FROM number)), wait, noisy_share, clock_timestamp(), now()
    ) AS told FROM room
) room ON tenants.ord = 1
LEFT JOIN told ON told.ord = tenants.ord
LEFT JOIN LATERAL (
    SELECT CASE WHEN pg_column_size(payload) <= 8192 THEN payload::text END AS payload FROM {job}
    WHERE told.claimed AND due_at = told.due_at AND id >= told.job_id AND id <= told.job_id
    ORDER BY id
    LIMIT 1
) job ON true
ORDER BY tenants.ord, told.pair, told.run_at, told.job_id
