-- processes: those that live, and those that ended or were lost in the last day, latest first, each with what it holds.
WITH held AS (
    SELECT process_id, count(*) AS jobs, min(claimed_at) AS since
    FROM jobs_queueentry WHERE process_id IS NOT NULL GROUP BY process_id
)
SELECT process.id, process.kind, process.host, process.pid, process.parent_id, process.queues, process.types,
    process.started_at, process.lease_expires_at, process.ended_at, coalesce(held.jobs, 0), held.since,
    CASE
        WHEN process.ended_at IS NOT NULL THEN 'ended'
        WHEN process.lease_expires_at > clock_timestamp() THEN 'live'
        ELSE 'lost'
    END,
    clock_timestamp()
FROM (
    (
        SELECT * FROM jobs_process
        WHERE kind = ANY(%(kinds)s::text[]) AND ended_at IS NULL ORDER BY lease_expires_at DESC LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT * FROM jobs_process
        WHERE kind = ANY(%(kinds)s::text[]) AND ended_at > now() - interval '1 day' ORDER BY id DESC LIMIT 20
    )
) process
LEFT JOIN held ON held.process_id = process.id
ORDER BY process.ended_at IS NOT NULL, process.kind, process.host, process.id
