-- the idle look: of each of my queues, when the earliest entry that waits may run; one probe a queue on
-- jobs_queueentry_next. Locks nothing.
SELECT queue.name, head.run_at, clock_timestamp()
FROM unnest(%(queues)s::text[]) queue(name)
LEFT JOIN LATERAL (
    SELECT run_at FROM jobs_queueentry
    WHERE queue = queue.name AND process_id IS NULL AND parked IS NULL
    ORDER BY run_at
    LIMIT 1
) head ON true
