-- admit, step 2: entries that wait for a concurrency key become ready, as many as the key has room for: the highest
-- priority first, then who waits longest. Under the key's lock: only this statement makes an entry with a key ready, so
-- what it counts (ready or leased, on jobs_queueentry_key) can but shrink meanwhile, and whoever ends one asks again.
-- A type allows so many at once with one key; of several types the smallest number counts. The first in line that does
-- not fit ends it, or it might wait for ever. The line of each priority is probed in turn: what is not due yet is not walked at every admission.
-- Entries that a cancel or a reschedule has locked are passed over. What is due now is due at the next
-- whole millisecond, and admitted a moment before it. `run_at` is at least now: it must not lie behind what a claimer has
-- passed.
WITH most AS MATERIALIZED (
    SELECT greatest(1, max(most)) AS most FROM jobs_keylimit
),
key AS MATERIALIZED (
    SELECT key.ord, key.tenant_id, key.name, entry.held, entry.least
    FROM unnest(%(tenants)s::bigint[], %(names)s::text[]) WITH ORDINALITY key(tenant_id, name, ord)
    CROSS JOIN LATERAL (
        SELECT count(*) AS held, min(coalesce(of_type.most, 1)) AS least
        FROM jobs_queueentry entry
        LEFT JOIN jobs_keylimit of_type ON of_type.job_type = entry.job_type
        WHERE entry.tenant_id = key.tenant_id AND entry.concurrency_key = key.name AND entry.parked IS NULL
    ) entry
),
line AS MATERIALIZED (
    SELECT key.ord, key.held, entry.place, least(key.least, coalesce(of_type.most, 1)) AS most,
        row_number() OVER (PARTITION BY key.ord ORDER BY entry.priority DESC, entry.run_at, entry.job_id) AS nth
    FROM key
    CROSS JOIN LATERAL (
        WITH RECURSIVE level AS (
            (
                SELECT priority FROM jobs_queueentry
                WHERE lease_token IS NULL AND parked = 'key' AND tenant_id = key.tenant_id AND concurrency_key = key.name
                ORDER BY priority DESC
                LIMIT 1
            )
            UNION ALL
            SELECT next.priority
            FROM level
            CROSS JOIN LATERAL (
                SELECT priority FROM jobs_queueentry
                WHERE lease_token IS NULL AND parked = 'key' AND tenant_id = key.tenant_id AND concurrency_key = key.name
                    AND priority < level.priority
                ORDER BY priority DESC
                LIMIT 1
            ) next
        )
        SELECT entry.*
        FROM level
        CROSS JOIN LATERAL (
            SELECT ctid AS place, job_type, priority, run_at, job_id FROM jobs_queueentry
            WHERE lease_token IS NULL AND parked = 'key' AND tenant_id = key.tenant_id AND concurrency_key = key.name
                AND priority = level.priority AND run_at <= statement_timestamp() + interval '10 ms'
            ORDER BY run_at, job_id
            LIMIT greatest(0, (SELECT most FROM most) - key.held)
            FOR UPDATE SKIP LOCKED
        ) entry
        LIMIT greatest(0, (SELECT most FROM most) - key.held)
    ) entry
    LEFT JOIN jobs_keylimit of_type ON of_type.job_type = entry.job_type
),
fit AS MATERIALIZED (
    SELECT place, held + nth <= min(most) OVER (PARTITION BY ord ORDER BY nth) AS taken FROM line
)
UPDATE jobs_queueentry SET parked = NULL, run_at = greatest(run_at, clock_timestamp())
WHERE ctid = ANY(ARRAY(SELECT place FROM fit WHERE taken))
