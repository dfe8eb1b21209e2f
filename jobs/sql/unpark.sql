-- unpark: entries parked for their type, by the heartbeat of a process that knows it. Rides on jobs_queueentry_parked.
-- One with a concurrency key has lost its place and waits for one.
WITH known AS MATERIALIZED (
    SELECT ctid FROM jobs_queueentry
    WHERE parked = 'type' AND job_type = ANY(%(types)s::text[])
    LIMIT 5000
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_queueentry SET parked = CASE WHEN concurrency_key IS NOT NULL THEN 'key' END,
    run_at = greatest(run_at, clock_timestamp())
WHERE ctid = ANY(ARRAY(SELECT ctid FROM known))
