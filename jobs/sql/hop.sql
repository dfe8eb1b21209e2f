-- claim, step 1: which (tenant, priority) pairs of a queue have an entry that is due, going round from a tenant.
-- Rides on jobs_queueentry_ready: a loose scan of one probe a pair. The head of a pair is its earliest entry, so its
-- run_at tells whether the pair is due: entries that are not due are never walked. Of a tenant, the highest due
-- priority alone: two pairs in one claim would each spend the same free slots. Ends after `hops` pairs or `wanted`
-- ready ones. Locks nothing.
WITH RECURSIVE passed AS MATERIALIZED (
    SELECT tenant_id, priority
    FROM unnest(%(passed_tenants)s::bigint[], %(passed_priorities)s::smallint[]) p(tenant_id, priority)
),
hop AS (
    (
        SELECT tenant_id, priority, run_at, 1 AS hops, 0 AS found
        FROM jobs_queueentry
        WHERE queue = %(queue)s AND lease_token IS NULL AND parked IS NULL AND tenant_id > %(after)s
        ORDER BY tenant_id, priority DESC, run_at, job_id
        LIMIT 1
    )
    UNION ALL
    SELECT next.tenant_id, next.priority, next.run_at, hop.hops + 1, hop.found + here.ready::int
    FROM hop
    CROSS JOIN LATERAL (
        SELECT hop.run_at <= now() AND (hop.tenant_id, hop.priority) NOT IN (SELECT * FROM passed) AS due
    ) head
    CROSS JOIN LATERAL (SELECT head.due AND hop.tenant_id <> ALL(%(full)s::bigint[]) AS ready) here
    CROSS JOIN LATERAL (
        (
            SELECT tenant_id, priority, run_at
            FROM jobs_queueentry
            WHERE NOT head.due AND queue = %(queue)s AND lease_token IS NULL AND parked IS NULL
                AND tenant_id = hop.tenant_id AND priority < hop.priority
            ORDER BY priority DESC, run_at, job_id
            LIMIT 1
        )
        UNION ALL
        (
            SELECT tenant_id, priority, run_at
            FROM jobs_queueentry
            WHERE queue = %(queue)s AND lease_token IS NULL AND parked IS NULL AND tenant_id > hop.tenant_id
            ORDER BY tenant_id, priority DESC, run_at, job_id
            LIMIT 1
        )
        LIMIT 1
    ) next
    WHERE hop.hops < %(hops)s AND hop.found + here.ready::int < %(wanted)s
)
SELECT hop.tenant_id, hop.priority,
    hop.run_at <= now() AND (hop.tenant_id, hop.priority) NOT IN (SELECT * FROM passed)
        AND hop.tenant_id <> ALL(%(full)s::bigint[]) AS ready,
    coalesce(tenant.weight, 1), tenant.max_running IS NOT NULL
FROM hop
LEFT JOIN jobs_tenant tenant ON tenant.id = hop.tenant_id
ORDER BY hop.hops
