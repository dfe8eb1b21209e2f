-- lift at a rate: is something left of what waited when a hold of everything, a queue or a tenant ended? What came after
-- is no backlog: an entry's `run_at` is at least the time of its coming or return. Rides on jobs_queueentry_next, for a
-- tenant on jobs_queueentry_ready, queue by queue.
WITH RECURSIVE queue AS (
    (
        SELECT queue FROM jobs_queueentry
        WHERE process_id IS NULL AND parked IS NULL
        ORDER BY queue
        LIMIT 1
    )
    UNION ALL
    SELECT next.queue
    FROM queue
    CROSS JOIN LATERAL (
        SELECT queue FROM jobs_queueentry
        WHERE process_id IS NULL AND parked IS NULL AND queue > queue.queue
        ORDER BY queue
        LIMIT 1
    ) next
)
SELECT EXISTS (
    SELECT FROM queue
    CROSS JOIN LATERAL (
        SELECT FROM jobs_queueentry
        WHERE %(scope)s <> 'tenant' AND queue = queue.queue AND process_id IS NULL AND parked IS NULL
            AND run_at <= %(until)s
        UNION ALL
        SELECT FROM jobs_queueentry
        WHERE queue = queue.queue AND lease_token IS NULL AND parked IS NULL
            AND run_at <= %(until)s
            AND tenant_id = (SELECT id FROM jobs_tenant WHERE slug = %(key)s)
        LIMIT 1
    ) waiting
    WHERE %(scope)s <> 'queue' OR queue.queue = %(key)s
)
