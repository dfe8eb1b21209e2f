-- hold: entries of held types and groups that became due since the last look leave the ready index, or the line of their
-- concurrency key, so that neither claims nor admissions walk them. What runs goes on. A claim does not wait for this:
-- it asks for holds itself. Rides on jobs_queueentry_next, queue by queue, and jobs_queueentry_keydue. Skips locked rows.
WITH RECURSIVE
{queues},
held AS MATERIALIZED (
    SELECT entry.place
    FROM queues
    CROSS JOIN LATERAL (
        SELECT ctid AS place FROM jobs_queueentry
        WHERE queue = queues.queue AND process_id IS NULL AND parked IS NULL
            AND run_at > %(since)s AND run_at <= %(now)s
            AND (job_type = ANY(%(types)s::text[]) OR "group" = ANY(%(groups)s::text[]))
        ORDER BY run_at
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ) entry
    LIMIT %(limit)s
),
in_line AS MATERIALIZED (
    SELECT ctid AS place FROM jobs_queueentry
    WHERE process_id IS NULL AND parked = 'key' AND run_at > %(since)s AND run_at <= %(now)s
        AND (job_type = ANY(%(types)s::text[]) OR "group" = ANY(%(groups)s::text[]))
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_queueentry SET parked = 'hold'
WHERE ctid = ANY(ARRAY(SELECT place FROM held UNION ALL SELECT place FROM in_line))
RETURNING tenant_id, concurrency_key
