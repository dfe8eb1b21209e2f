-- dispatch: timers of one day that come due before `until` become queue entries. Several dispatchers side by side skip
-- each other's rows. Rides on the leaf's key. A conflict on the entry's key is an error to be looked at, never hidden
-- by ON CONFLICT. A job with a concurrency key waits for it (see `admit`). By ctid: timers are never updated, so it cannot change under us, and no plan can go wrong. `run_at` is at least now: an entry hardly ever lies behind what a claimer has already passed.
WITH due AS MATERIALIZED (
    SELECT ctid FROM {timer}
    WHERE due_at < %(until)s AND job_id <> ALL(%(aside)s::uuid[])
    ORDER BY due_at, job_id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM {timer}
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM due))
    RETURNING *
),
entry AS (
    INSERT INTO jobs_queueentry
        (job_id, due_at, run_at, tenant_id, queue, job_type, priority, attempt, max_attempts, crashes, cancel_requested,
         "group", concurrency_key, parked)
    SELECT job_id, due_at, greatest(due_at, clock_timestamp()), tenant_id, queue, job_type, priority, 0, max_attempts, 0,
        false, "group", concurrency_key, CASE WHEN concurrency_key IS NOT NULL THEN 'key' END
    FROM gone
    RETURNING run_at
)
SELECT count(*), min(run_at) FROM entry
