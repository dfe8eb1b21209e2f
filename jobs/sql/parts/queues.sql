-- queues: those in which something waits, whether its time has come or not. One probe of jobs_queueentry_next a queue.
queues AS (
    (
        SELECT queue FROM jobs_queueentry
        WHERE process_id IS NULL AND parked IS NULL
        ORDER BY queue
        LIMIT 1
    )
    UNION ALL
    SELECT next.queue
    FROM queues
    CROSS JOIN LATERAL (
        SELECT queue FROM jobs_queueentry
        WHERE process_id IS NULL AND parked IS NULL AND queue > queues.queue
        ORDER BY queue
        LIMIT 1
    ) next
)
