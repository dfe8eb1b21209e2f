-- tenants: of these, what runs, what waits (up to a cap) and since when.
SELECT tenant.id, running.count, coalesce(waiting.count, 0), waiting.oldest
FROM unnest(%(ids)s::bigint[]) tenant (id)
CROSS JOIN LATERAL (
    SELECT count(*) FROM jobs_queueentry WHERE tenant_id = tenant.id AND lease_token IS NOT NULL
) running
LEFT JOIN LATERAL (
    SELECT sum(part.count)::bigint AS count, min(part.oldest) AS oldest
    FROM unnest(%(queues)s::text[]) queue (name)
    CROSS JOIN LATERAL (
        SELECT count(*), min(run_at) AS oldest FROM (
            SELECT run_at FROM jobs_queueentry
            WHERE queue = queue.name AND tenant_id = tenant.id AND lease_token IS NULL AND parked IS NULL
                AND run_at <= now()
            LIMIT %(cap)s
        ) head
    ) part
) waiting ON true
