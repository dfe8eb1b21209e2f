-- claim, step 3: take entries of the chosen pairs, each under a new lease token.
-- Guards: not leased, not parked, due by the server's clock, a type this worker knows, our own process still alive;
-- a limited tenant or queue that we did not lock gives nothing, so a limit set since step 1 is never broken.
-- The pick is MATERIALIZED: a sub-select in UPDATE … WHERE id IN may run again and overclaim. The row lock sits inside
-- the inner LIMIT, so nothing is locked in vain; SKIP LOCKED, so two claimers never wait for each other.
-- Written by ctid: joined by key, a plan made while the statistics say "empty" walks the whole table once a row (25 s
-- for 500 of 50,000). A row that was changed after our snapshot is locked but not found by its new ctid: next time.
-- An entry that must start at once (its last attempt, it was in a crash, or it takes up a slot of a limit) is taken
-- for a free thread only.
WITH tenants AS MATERIALIZED (
    SELECT pair.tenant_id, pair.priority, pair.ord, tenant.max_running IS NOT NULL AS limited,
        CASE
            WHEN tenant.max_running IS NULL THEN pair.share
            WHEN pair.tenant_id <> ALL(%(locked)s::bigint[]) THEN 0
            ELSE greatest(0, least(pair.share, tenant.max_running - running.count))
        END AS allowed
    FROM unnest(%(tenants)s::bigint[], %(priorities)s::smallint[], %(shares)s::int[])
        WITH ORDINALITY pair(tenant_id, priority, share, ord)
    LEFT JOIN jobs_tenant tenant ON tenant.id = pair.tenant_id
    LEFT JOIN LATERAL (
        SELECT count(*) FROM (
            SELECT FROM jobs_queueentry entry
            WHERE entry.tenant_id = pair.tenant_id AND entry.lease_token IS NOT NULL
                AND pair.tenant_id = ANY(%(locked)s::bigint[])
            LIMIT tenant.max_running
        ) leased
    ) running ON tenant.max_running IS NOT NULL
),
room AS MATERIALIZED (
    SELECT queue.max_running IS NOT NULL AS limited,
        CASE
            WHEN NOT EXISTS (
                SELECT FROM jobs_process
                WHERE id = %(process_id)s AND lease_expires_at > clock_timestamp()
            ) THEN -1
            WHEN queue.max_running IS NULL THEN %(size)s
            WHEN NOT %(queue_locked)s THEN 0
            ELSE greatest(0, least(%(size)s, queue.max_running - (
                SELECT count(*) FROM jobs_queueentry entry
                WHERE entry.queue = %(queue)s AND entry.process_id IS NOT NULL
            )))
        END AS size
    FROM (SELECT) one
    LEFT JOIN jobs_queue queue ON queue.name = %(queue)s
),
pick AS MATERIALIZED (
    SELECT entry.ctid, entry.at_once, tenants.ord
    FROM tenants
    CROSS JOIN LATERAL (
        SELECT ctid,
            attempt + 1 >= max_attempts OR crashes > 0 OR tenants.limited OR (SELECT limited FROM room) AS at_once
        FROM jobs_queueentry
        WHERE queue = %(queue)s AND lease_token IS NULL AND parked IS NULL
            AND tenant_id = tenants.tenant_id AND priority = tenants.priority AND run_at <= now()
            AND job_type = ANY(%(types)s::text[]) AND (crashes >= 2) = %(suspects)s
        ORDER BY run_at, job_id
        LIMIT tenants.allowed
        FOR UPDATE SKIP LOCKED
    ) entry
    WHERE tenants.allowed > 0
    LIMIT (SELECT greatest(0, size) FROM room)
),
seen AS (
    SELECT ord, count(*) FROM pick GROUP BY ord
),
fit AS (
    SELECT ctid
    FROM (SELECT ctid, at_once, row_number() OVER (PARTITION BY at_once ORDER BY ord) AS place FROM pick) ranked
    WHERE NOT at_once OR place <= %(free)s
),
claimed AS (
    UPDATE jobs_queueentry entry
    SET lease_token = gen_random_uuid(), process_id = %(process_id)s, claimed_at = clock_timestamp(), attempt = attempt + 1
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM fit))
    RETURNING entry.job_id, entry.due_at, entry.lease_token, entry.tenant_id, entry.priority, entry.job_type, entry.attempt,
        entry.max_attempts, entry.crashes, entry."group", entry.run_at
)
SELECT tenants.tenant_id, tenants.priority, tenants.allowed, coalesce(seen.count, 0), tenants.limited, room.size,
    room.limited,
    claimed.job_id, claimed.due_at, claimed.lease_token, claimed.job_type, claimed.attempt, claimed.max_attempts, claimed.crashes,
    claimed."group", clock_timestamp()
FROM tenants
CROSS JOIN room
LEFT JOIN seen ON seen.ord = tenants.ord
LEFT JOIN claimed ON claimed.tenant_id = tenants.tenant_id AND claimed.priority = tenants.priority
ORDER BY tenants.ord, claimed.run_at, claimed.job_id
