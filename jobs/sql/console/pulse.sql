-- pulse: what may stand in the way, in one look: who lives, how far dispatch is behind, which tenants run all they may, what is
-- parked because no live worker knows its type, which operations ask for approval. Each part stops at its limit.
SELECT clock_timestamp(), process.workers, process.dispatchers, process.lost,
    process.there > 0 OR coalesce((SELECT ended_at > now() - interval '1 day' FROM jobs_process ORDER BY id DESC LIMIT 1), false),
    (
        SELECT due_at FROM jobs_timer
        WHERE due_at >= %(start)s AND due_at < %(end)s ORDER BY due_at LIMIT 1
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(id, slug, max_running, running) ORDER BY running DESC, slug), '[]') FROM (
            SELECT tenant.id, tenant.slug, tenant.max_running, coalesce(held.running, 0) AS running
            FROM jobs_tenant tenant
            LEFT JOIN (
                SELECT tenant_id, count(*) AS running FROM jobs_queueentry WHERE lease_token IS NOT NULL GROUP BY tenant_id
            ) held ON held.tenant_id = tenant.id
            WHERE tenant.max_running IS NOT NULL AND coalesce(held.running, 0) >= tenant.max_running
            ORDER BY 4 DESC, 2 LIMIT %(full)s
        ) full_tenants
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(job_type, jobs) ORDER BY job_type), '[]') FROM (
            SELECT job_type, count(*) AS jobs FROM (
                SELECT job_type FROM jobs_queueentry WHERE parked = 'type' ORDER BY job_type LIMIT %(cap)s
            ) head GROUP BY job_type
        ) parked
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_array(id, author_id) ORDER BY id), '[]') FROM (
            SELECT id, author_id FROM jobs_operation WHERE state = 'asked' ORDER BY id LIMIT %(asked)s
        ) asked
    )
FROM (
    SELECT count(*) FILTER (WHERE kind = 'worker' AND lease_expires_at > clock_timestamp()) AS workers,
        count(*) FILTER (WHERE kind = 'dispatcher' AND lease_expires_at > clock_timestamp()) AS dispatchers,
        count(*) FILTER (WHERE lease_expires_at <= clock_timestamp()) AS lost, count(*) AS there
    FROM jobs_process WHERE ended_at IS NULL
) process
