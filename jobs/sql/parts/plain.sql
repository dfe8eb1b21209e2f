-- plain: the same for those of whom no limit, rate or hold is known: half of the plan, so most claims are made by it.
-- Whoever has one after all, or pairs, or something that drains, gives nothing: the claimer learns of it and asks anew,
-- with the locks and by the rules.
hold AS MATERIALIZED (
    SELECT scope, key FROM jobs_hold
    WHERE drained_at IS NULL AND since <= now() AND (until IS NULL OR until > now() OR drain IS NOT NULL)
        AND (scope IN ('all', 'tenant') OR scope = 'queue' AND key = %(queue)s)
),
tenants AS MATERIALIZED (
    SELECT share.tenant_id, share.ord, tenant.slug, tenant.weight, tenant.noisy_exempt, false AS held, rule.limited,
        0 AS oldest, CASE WHEN rule.limited THEN 0 ELSE share.most END AS allowed, NULL::float8 AS wait
    FROM unnest(
        %(tenants)s::bigint[], %(shares)s::bigint[]
    ) WITH ORDINALITY share(tenant_id, most, ord)
    LEFT JOIN LATERAL (
        SELECT slug, weight, noisy_exempt,
            rate IS NOT NULL
                OR CASE WHEN temporary_until > now() THEN temporary_max_running ELSE max_running END IS NOT NULL AS limited
        FROM jobs_tenant WHERE id = share.tenant_id LIMIT 1
    ) tenant ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(tenant.limited, false)
            OR EXISTS (SELECT FROM jobs_tenantqueuelimit WHERE queue = %(queue)s AND tenant_id = share.tenant_id)
            OR tenant.slug IN (SELECT key FROM hold WHERE scope = 'tenant') IS TRUE AS limited
        OFFSET 0
    ) rule
),
room AS MATERIALIZED (
    SELECT rule.*, queue.noisy_share, 0 AS oldest, NULL::float8 AS wait,
        CASE
            WHEN NOT EXISTS (
                SELECT FROM jobs_process
                WHERE id = %(process_id)s AND lease_expires_at > clock_timestamp()
            ) THEN -1
            WHEN rule.limited OR rule.draining THEN 0
            ELSE %(size)s
        END AS size
    FROM (SELECT EXISTS (SELECT FROM hold WHERE scope <> 'tenant') AS draining) held
    LEFT JOIN LATERAL (
        SELECT noisy_share, max_running IS NOT NULL OR rate IS NOT NULL AS limited FROM jobs_queue WHERE name = %(queue)s
    ) queue ON true
    CROSS JOIN LATERAL (SELECT coalesce(queue.limited, false) AS limited, held.draining) rule
),
