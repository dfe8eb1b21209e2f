-- queues: of each queue that has entries, a row, a live worker or a type here: its limit, what runs, what waits and
-- since when. Names are walked by the index, counts of waiting entries stop at the cap.
WITH RECURSIVE
{queues},
running AS (
    SELECT queue, count(*) AS running, min(claimed_at) AS since
    FROM jobs_queueentry WHERE process_id IS NOT NULL GROUP BY queue
),
served AS (
    SELECT unnest(queues) AS queue, count(*) AS workers FROM jobs_process
    WHERE ended_at IS NULL AND lease_expires_at > now() AND kind = 'worker' GROUP BY 1
),
names (queue) AS (
    SELECT queue FROM queues
    UNION SELECT queue FROM running
    UNION SELECT queue FROM served
    UNION SELECT name FROM jobs_queue
    UNION SELECT unnest(%(known)s::text[])
)
SELECT names.queue, owner.id, owner.max_running, coalesce(running.running, 0), running.since,
    due.count, due.oldest, later.count, later.next, coalesce(served.workers, 0), clock_timestamp()
FROM (
    SELECT queue FROM names WHERE queue >= %(after)s AND (%(name)s::text IS NULL OR queue = %(name)s)
    ORDER BY queue LIMIT %(names)s
) names
LEFT JOIN jobs_queue owner ON owner.name = names.queue
LEFT JOIN running ON running.queue = names.queue
LEFT JOIN served ON served.queue = names.queue
CROSS JOIN LATERAL (
    SELECT count(*), min(run_at) AS oldest FROM (
        SELECT run_at FROM jobs_queueentry
        WHERE queue = names.queue AND process_id IS NULL AND parked IS NULL AND run_at <= now()
        ORDER BY run_at LIMIT %(cap)s
    ) head
) due
CROSS JOIN LATERAL (
    SELECT count(*), min(run_at) AS next FROM (
        SELECT run_at FROM jobs_queueentry
        WHERE queue = names.queue AND process_id IS NULL AND parked IS NULL AND run_at > now()
        ORDER BY run_at LIMIT %(cap)s
    ) head
) later
ORDER BY names.queue
