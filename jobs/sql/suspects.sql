-- is there an entry that crashed its process twice and may run now? Rides on jobs_queueentry_suspect, whose predicate
-- is these constants.
SELECT EXISTS (
    SELECT FROM jobs_queueentry
    WHERE crashes >= 2 AND lease_token IS NULL AND queue = ANY(%(queues)s::text[])
        AND parked IS NULL AND run_at <= clock_timestamp()
)
