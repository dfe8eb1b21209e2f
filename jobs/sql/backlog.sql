-- lift at a rate: is something left of what waited when a hold of everything, a queue or a tenant ended? What came after
-- is no backlog: an entry's `run_at` is at least the time of its coming or return. Rides on jobs_queueentry_next, for a
-- tenant on jobs_queueentry_ready, queue by queue.
WITH RECURSIVE
{queues}
SELECT EXISTS (
    SELECT FROM queues
    CROSS JOIN LATERAL (
        SELECT FROM jobs_queueentry
        WHERE %(scope)s <> 'tenant' AND queue = queues.queue AND process_id IS NULL AND parked IS NULL
            AND run_at <= %(until)s
        UNION ALL
        SELECT FROM jobs_queueentry
        WHERE queue = queues.queue AND lease_token IS NULL AND parked IS NULL
            AND run_at <= %(until)s
            AND tenant_id = (SELECT id FROM jobs_tenant WHERE slug = %(key)s)
        LIMIT 1
    ) waiting
    WHERE %(scope)s <> 'queue' OR queues.queue = %(key)s
)
