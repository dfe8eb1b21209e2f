-- schedule: a job that is due within the look-ahead, straight into its queue. `run_at` is at least the time of its
-- insertion (clock_timestamp(), not the start of a long transaction), so that it hardly ever lies behind a claimer. With a
-- concurrency key it waits for that; the caller asks for its admission after the commit.
WITH job AS (
    INSERT INTO jobs_job
        (id, due_at, tenant_id, job_type, queue, priority, payload, "group", max_attempts, cron_id, unique_key, unique_for,
         concurrency_key)
    VALUES
        (%(id)s, %(due_at)s, %(tenant_id)s, %(job_type)s, %(queue)s, %(priority)s, %(payload)s, %(group)s,
         %(max_attempts)s, %(cron_id)s, %(unique_key)s, %(unique_for)s, %(concurrency_key)s)
    RETURNING (extract(epoch FROM created_at) * 1000000)::bigint AS created_us
),
entry AS (
    INSERT INTO jobs_queueentry
        (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, crashes,
         cancel_requested, "group", concurrency_key, parked)
    VALUES
        (%(id)s, %(due_at)s, greatest(%(due_at)s, clock_timestamp()), %(tenant_id)s, %(queue)s, %(job_type)s,
         %(priority)s, 0, %(max_attempts)s, 0, false, %(group)s, %(concurrency_key)s,
         CASE WHEN %(concurrency_key)s IS NOT NULL THEN 'key' END)
)
SELECT created_us FROM job
