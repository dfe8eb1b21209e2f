-- cancel, place 1 of 3: jobs that were never dispatched. Locked in id order, so that two bulk cancels cannot deadlock;
-- a dispatcher that has a row is waited for, and then the row is gone: zero rows, look in the queue.
WITH mine AS MATERIALIZED (
    SELECT job_id FROM jobs_timer
    WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])
    ORDER BY job_id
    FOR UPDATE
),
gone AS (
    DELETE FROM jobs_timer
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND due_at = ANY(%(dues)s::timestamptz[])
    RETURNING job_id, due_at, max_attempts
)
INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at, action_id)
SELECT job_id, due_at, 'cancelled', 0, max_attempts, 0, clock_timestamp(), %(action_id)s FROM gone
RETURNING job_id
