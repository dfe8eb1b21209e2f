-- lift: entries that were parked for a hold come back, the highest priority first, then who waits longest: those of
-- the given types and groups, or all of whom none is given, but for what is held (still, or by another hold). `run_at` is
-- at least now: it must not lie behind what claimers have passed. One with a concurrency key waits for that. Rides on
-- jobs_queueentry_held. Skips locked rows.
WITH found AS MATERIALIZED (
    SELECT ctid AS place FROM jobs_queueentry
    WHERE parked = 'hold'
        AND (%(everything)s OR job_type = ANY(%(types)s::text[]) OR "group" = ANY(%(groups)s::text[]))
        AND job_type <> ALL(%(held_types)s::text[]) AND coalesce("group", '') <> ALL(%(held_groups)s::text[])
    ORDER BY priority DESC, run_at, job_id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_queueentry SET parked = CASE WHEN concurrency_key IS NOT NULL THEN 'key' END,
    run_at = greatest(run_at, clock_timestamp())
WHERE ctid = ANY(ARRAY(SELECT place FROM found))
RETURNING tenant_id, concurrency_key
