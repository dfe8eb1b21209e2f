-- reschedule, place 2 of 2: a dispatched job that is not running. Guard: not leased, under the row's lock. It gives up
-- its place under a concurrency key, and waits for one when its time comes.
WITH mine AS MATERIALIZED (
    SELECT job_id FROM jobs_queueentry
    WHERE job_id = ANY(%(ids)s::uuid[])
    ORDER BY job_id
    FOR UPDATE
)
UPDATE jobs_queueentry
SET run_at = greatest(%(run_at)s, clock_timestamp()), waits = 'reschedule', action_id = %(action_id)s,
    parked = CASE WHEN parked IS NULL AND concurrency_key IS NOT NULL THEN 'key' ELSE parked END
WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND lease_token IS NULL
RETURNING job_id, tenant_id, concurrency_key
