-- sweep: the head of each pair that claims touched, from its proven floor on. One that lies behind the claimer's mark
-- was skipped there as locked by a claim or a cancel that then rolled back. What we do not know stays there for good: it is
-- no head, or each sweep would take the mark back behind all of it. Locks nothing.
SELECT snapshot.*, pair.queue, pair.tenant_id, pair.priority, head.run_at, head.job_id, false,
    coalesce(tenant.weight, 1), coalesce(tenant.limited, false)
FROM (
    SELECT clock_timestamp() AS moment, now() AS now,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            + greatest(0, age(pg_snapshot_xmax(pg_current_snapshot())::xid)) AS next_xid
) snapshot
LEFT JOIN unnest(
    %(pair_queues)s::text[], %(tenants)s::bigint[], %(priorities)s::bigint[], %(run_ats)s::timestamptz[], %(job_ids)s::uuid[]
) pair(queue, tenant_id, priority, run_at, job_id) ON true
LEFT JOIN LATERAL (
    SELECT run_at, job_id
    FROM jobs_queueentry
    WHERE queue = pair.queue AND lease_token IS NULL AND parked IS NULL
        AND tenant_id = pair.tenant_id AND priority = pair.priority::smallint
        AND (run_at, job_id) > (pair.run_at, pair.job_id) AND run_at <= now()
        AND job_type = ANY(%(types)s::text[])
    ORDER BY run_at, job_id
    LIMIT 1
) head ON true
LEFT JOIN LATERAL (
    SELECT weight,
        coalesce(CASE WHEN temporary_until > now() THEN temporary_max_running ELSE max_running END, rate) IS NOT NULL
            OR (SELECT EXISTS (SELECT FROM jobs_tenantqueuelimit)) AND EXISTS (
                SELECT FROM jobs_tenantqueuelimit WHERE queue = pair.queue AND tenant_id = pair.tenant_id
            ) AS limited
    FROM jobs_tenant WHERE id = pair.tenant_id LIMIT 1
) tenant ON true
