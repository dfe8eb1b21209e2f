-- retry: ended jobs back into their queues. The outcome is deleted through the parent, never by the leaf's name: a day
-- that is being dropped has its outcome leaf detached first, so this finds nothing and the job stays ended.
-- Guard: the state under the row's lock; the second of two operators gets zero rows. `attempt` is kept and the limit
-- raised, so that attempt numbers never repeat. The jobs are read in one go: looked up one by one, each under the
-- bounds of all, PostgreSQL 15 reads the whole leaf for each of them.
WITH mine AS MATERIALIZED (
    SELECT job_id FROM jobs_outcome
    WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])
      AND state IN ('failed', 'cancelled')
    ORDER BY job_id
    FOR UPDATE
),
gone AS (
    DELETE FROM jobs_outcome
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND due_at = ANY(%(dues)s::timestamptz[])
      AND state IN ('failed', 'cancelled')
    RETURNING job_id, due_at, attempt, max_attempts
),
job AS MATERIALIZED (
    SELECT id, tenant_id, queue, job_type, priority, max_attempts, "group", concurrency_key FROM jobs_job
    WHERE id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])
),
back AS (
    INSERT INTO jobs_queueentry
        (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, crashes,
         cancel_requested, "group", concurrency_key, parked, action_id)
    SELECT gone.job_id, gone.due_at, greatest(gone.due_at, clock_timestamp()), job.tenant_id, job.queue, job.job_type,
        job.priority, gone.attempt, greatest(gone.max_attempts, gone.attempt + job.max_attempts), 0,
        false, job."group", job.concurrency_key,
        CASE WHEN job.concurrency_key IS NOT NULL THEN 'key' END, %(action_id)s
    FROM gone
    JOIN job ON job.id = gone.job_id
    RETURNING job_id, tenant_id, concurrency_key
)
SELECT job_id, tenant_id, concurrency_key FROM back
