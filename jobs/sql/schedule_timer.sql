-- schedule: a job that is due later, with its timer, in one round trip. The rows are routed by their due_at; both
-- tables get the same one. A second job of the same id is an error of the key, never hidden.
WITH job AS (
    INSERT INTO jobs_job
        (id, due_at, tenant_id, job_type, queue, priority, payload, "group", max_attempts, cron_id, unique_key, unique_for,
         concurrency_key)
    VALUES
        (%(id)s, %(due_at)s, %(tenant_id)s, %(job_type)s, %(queue)s, %(priority)s, %(payload)s, %(group)s,
         %(max_attempts)s, %(cron_id)s, %(unique_key)s, %(unique_for)s, %(concurrency_key)s)
    RETURNING (extract(epoch FROM created_at) * 1000000)::bigint AS created_us
),
timer AS (
    INSERT INTO jobs_timer (job_id, due_at, tenant_id, queue, job_type, priority, max_attempts, "group", concurrency_key)
    VALUES
        (%(id)s, %(due_at)s, %(tenant_id)s, %(queue)s, %(job_type)s, %(priority)s, %(max_attempts)s, %(group)s,
         %(concurrency_key)s)
)
SELECT created_us FROM job
