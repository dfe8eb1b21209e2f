-- cancel, place 2 of 3: dispatched jobs. Not leased: the entry goes and the outcome says cancelled. Leased: only the
-- flag is set; the worker sees it within a second, and every exit from running except completion obeys it.
WITH mine AS MATERIALIZED (
    SELECT job_id, lease_token IS NOT NULL AS leased FROM jobs_queueentry
    WHERE job_id = ANY(%(ids)s::uuid[])
    ORDER BY job_id
    FOR UPDATE
),
flagged AS (
    UPDATE jobs_queueentry SET cancel_requested = true, action_id = %(action_id)s
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine WHERE leased))
    RETURNING job_id
),
gone AS (
    DELETE FROM jobs_queueentry
    WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine WHERE NOT leased))
    RETURNING job_id, due_at, attempt, max_attempts, crashes, tenant_id, concurrency_key
),
ended AS (
    INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at, action_id)
    SELECT job_id, due_at, 'cancelled', attempt, max_attempts, crashes, clock_timestamp(), %(action_id)s FROM gone
)
SELECT job_id, false AS running, tenant_id, concurrency_key FROM gone
UNION ALL
SELECT job_id, true, NULL, NULL FROM flagged
