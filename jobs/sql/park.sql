-- park: due entries whose type no live process knows leave the ready index, so that claims do not walk them. Never
-- failed, never lost: they run when a worker that knows the type appears and unparks them. Skips locked rows.
WITH unknown AS MATERIALIZED (
    SELECT ctid FROM jobs_queueentry
    WHERE queue = %(queue)s AND process_id IS NULL AND parked IS NULL AND run_at <= now()
        AND job_type <> ALL(
            SELECT DISTINCT unnest(types) FROM jobs_process
            WHERE ended_at IS NULL AND lease_expires_at > clock_timestamp()
        )
    LIMIT 5000
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_queueentry SET parked = 'type'
WHERE ctid = ANY(ARRAY(SELECT ctid FROM unknown))
RETURNING job_type
