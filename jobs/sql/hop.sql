-- a fresh start, and the net under looks and sweeps: every (tenant, priority) pair that has something due, and its head.
-- Rides on jobs_queueentry_ready: a loose scan of one probe a pair. The head of a pair is its earliest entry, so its
-- run_at tells whether the pair is due: entries that are not due are never walked. A row without a pair says that an
-- unknown type is among the first of the queue that are due: it may lie behind heads that are known. Under a pinned snapshot it walks the
-- dead heads of every tenant, so it runs seldom. Locks nothing.
SELECT snapshot.*, queue.name, found.tenant_id, found.priority, found.run_at, found.job_id, found.unknown,
    coalesce(tenant.weight, 1), coalesce(tenant.limited, false)
FROM (
    SELECT clock_timestamp() AS moment, now() AS now,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            + greatest(0, age(pg_snapshot_xmax(pg_current_snapshot())::xid)) AS next_xid
) snapshot
CROSS JOIN unnest(%(queues)s::text[]) queue(name)
LEFT JOIN LATERAL (
    WITH RECURSIVE hop AS (
        (
            SELECT tenant_id, priority, run_at, job_id, job_type
            FROM jobs_queueentry
            WHERE queue = queue.name AND lease_token IS NULL AND parked IS NULL
            ORDER BY tenant_id, priority DESC, run_at, job_id
            LIMIT 1
        )
        UNION ALL
        SELECT next.*
        FROM hop
        CROSS JOIN LATERAL (
            (
                SELECT tenant_id, priority, run_at, job_id, job_type
                FROM jobs_queueentry
                WHERE queue = queue.name AND lease_token IS NULL AND parked IS NULL
                    AND tenant_id = hop.tenant_id AND priority < hop.priority
                ORDER BY priority DESC, run_at, job_id
                LIMIT 1
            )
            UNION ALL
            (
                SELECT tenant_id, priority, run_at, job_id, job_type
                FROM jobs_queueentry
                WHERE queue = queue.name AND lease_token IS NULL AND parked IS NULL AND tenant_id > hop.tenant_id
                ORDER BY tenant_id, priority DESC, run_at, job_id
                LIMIT 1
            )
            LIMIT 1
        ) next
    )
    SELECT tenant_id, priority, run_at, job_id, job_type <> ALL(%(types)s::text[]) AS unknown FROM hop
    WHERE run_at <= now()
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, true
    WHERE EXISTS (
        SELECT FROM (
            SELECT job_type FROM jobs_queueentry
            WHERE queue = queue.name AND process_id IS NULL AND parked IS NULL AND run_at <= now()
            ORDER BY run_at
            LIMIT 1000
        ) first
        WHERE job_type <> ALL(%(types)s::text[])
    )
) found ON true
LEFT JOIN LATERAL (
    SELECT weight,
        coalesce(CASE WHEN temporary_until > now() THEN temporary_max_running ELSE max_running END, rate) IS NOT NULL
            OR (SELECT EXISTS (SELECT FROM jobs_tenantqueuelimit)) AND EXISTS (
                SELECT FROM jobs_tenantqueuelimit WHERE queue = queue.name AND tenant_id = found.tenant_id
            ) AS limited
    FROM jobs_tenant WHERE id = found.tenant_id LIMIT 1
) tenant ON true
