-- prioritize and move, place 2 of 2: dispatched jobs that are not running. Guard: not leased, under the row's lock. The run
-- time is at least now: at its new place the entry must not lie behind what claimers have already passed. NULL leaves a
-- column as it is.
WITH wanted AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(priorities)s::smallint[], %(queues)s::text[]) w(job_id, priority, queue)
),
mine AS MATERIALIZED (
    SELECT job_id FROM jobs_queueentry
    WHERE job_id = ANY(%(ids)s::uuid[])
    ORDER BY job_id
    FOR UPDATE
)
UPDATE jobs_queueentry entry
SET priority = coalesce(wanted.priority, entry.priority), queue = coalesce(wanted.queue, entry.queue),
    run_at = greatest(entry.run_at, clock_timestamp()), action_id = %(action_id)s
FROM wanted
WHERE entry.job_id = wanted.job_id AND entry.job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND entry.lease_token IS NULL
RETURNING entry.job_id
