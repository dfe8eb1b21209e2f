-- reschedule, place 1 of 2: a job that was never dispatched gets an entry with the new run time; its due time, which
-- decides its partition, never changes.
WITH mine AS MATERIALIZED (
    SELECT job_id FROM jobs_timer
    WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])
    ORDER BY job_id
    FOR UPDATE
),
gone AS (
    DELETE FROM jobs_timer
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND due_at = ANY(%(dues)s::timestamptz[])
    RETURNING *
)
INSERT INTO jobs_queueentry
    (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, crashes, cancel_requested,
     waits, "group", concurrency_key, parked, action_id)
SELECT job_id, due_at, greatest(%(run_at)s, clock_timestamp()), tenant_id, queue, job_type, priority, 0, max_attempts, 0,
    false, 'reschedule', "group", concurrency_key, CASE WHEN concurrency_key IS NOT NULL THEN 'key' END,
    %(action_id)s
FROM gone
RETURNING job_id, tenant_id, concurrency_key
