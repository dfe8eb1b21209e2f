-- reschedule, place 2 of 2: a dispatched job that is not running. Guard: not leased, under the row's lock.
WITH mine AS MATERIALIZED (
    SELECT job_id FROM jobs_queueentry
    WHERE job_id = ANY(%(ids)s::uuid[])
    ORDER BY job_id
    FOR UPDATE
)
UPDATE jobs_queueentry
SET run_at = greatest(%(run_at)s, clock_timestamp()), waits = 'reschedule', action_id = %(action_id)s
WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND lease_token IS NULL
RETURNING job_id
