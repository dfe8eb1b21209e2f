-- relay: settle jobs of one tenant that have completed, and start as many of its next entries in their places. One statement
-- takes away as many leases as it adds, so what the tenant runs never grows and no lock on its row is needed; when its limit
-- was lowered, fewer start. Only a tenant whose one limit is `max_running`: who has a rate, a limit in this queue, a limit
-- of the queue or a hold gets nothing here, and is judged by the claim.
-- Guards: those of `complete` and of the claim. A claim of its own number, drawn here: later than that of the lease it
-- replaces, so that who counts from the oldest lease counts it too.
-- Durable, as a settle is.
WITH
{ended},
place AS MATERIALIZED (
    SELECT tenant.slug, greatest(0, least(mine.count, tenant.most + mine.count - running.count)) AS allowed
    FROM (SELECT count(*) FROM mine) mine
    CROSS JOIN LATERAL (
        SELECT slug, CASE WHEN temporary_until > now() THEN temporary_max_running ELSE max_running END AS most
        FROM jobs_tenant WHERE id = %(tenant_id)s AND rate IS NULL
        LIMIT 1
    ) tenant
    CROSS JOIN LATERAL (
        SELECT count(*) FROM (
            SELECT FROM jobs_queueentry
            WHERE tenant_id = %(tenant_id)s AND lease_token IS NOT NULL AND claim_no >= %(oldest)s
            ORDER BY claim_no
            LIMIT coalesce(tenant.most, 0) + mine.count
        ) leased
    ) running
    WHERE tenant.most IS NOT NULL
        AND EXISTS (SELECT FROM jobs_process WHERE id = %(process_id)s AND lease_expires_at > clock_timestamp())
        AND NOT EXISTS (SELECT FROM jobs_tenantqueuelimit WHERE queue = %(queue)s AND tenant_id = %(tenant_id)s)
        AND NOT EXISTS (
            SELECT FROM jobs_queue WHERE name = %(queue)s AND (max_running IS NOT NULL OR rate IS NOT NULL)
        )
        AND NOT EXISTS (
            SELECT FROM jobs_hold
            WHERE drained_at IS NULL AND since <= now() AND (until IS NULL OR until > now() OR drain IS NOT NULL)
                AND (scope = 'all' OR scope = 'queue' AND key = %(queue)s OR scope = 'tenant' AND key = tenant.slug)
        )
),
held_kinds AS MATERIALIZED (
    SELECT scope, key FROM jobs_hold
    WHERE drained_at IS NULL AND scope IN ('type', 'group') AND since <= now() AND (until IS NULL OR until > now())
),
pick AS MATERIALIZED (
    SELECT entry.*
    FROM unnest(%(priorities)s::bigint[], %(run_ats)s::timestamptz[], %(job_ids)s::uuid[])
        WITH ORDINALITY pair(priority, run_at, job_id, ord)
    CROSS JOIN LATERAL (
        SELECT pair.priority, pair.ord, ctid, run_at, job_id, due_at, job_type, attempt + 1 AS attempt, max_attempts,
            crashes, "group", concurrency_key
        FROM jobs_queueentry
        WHERE queue = %(queue)s AND lease_token IS NULL AND parked IS NULL
            AND tenant_id = %(tenant_id)s AND priority = pair.priority::smallint
            AND (run_at, job_id) > (pair.run_at, pair.job_id) AND run_at <= now()
            AND job_type = ANY(%(types)s::text[]) AND crashes < 2
            AND job_type <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = 'type'))
            AND ("group" IS NULL OR "group" <> ALL(ARRAY(SELECT key FROM held_kinds WHERE scope = 'group')))
        ORDER BY run_at, job_id
        LIMIT coalesce((SELECT allowed FROM place), 0)
        FOR UPDATE SKIP LOCKED
    ) entry
    LIMIT coalesce((SELECT allowed FROM place), 0)
),
claimed AS (
    UPDATE jobs_queueentry entry
    SET lease_token = %(token)s, process_id = %(process_id)s, claim_no = nextval('jobs_claim_no'),
        claimed_at = clock_timestamp(), attempt = attempt + 1
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM pick))
    RETURNING entry.job_id
),
told AS MATERIALIZED (
    SELECT *, job_id IN (SELECT job_id FROM claimed) AS claimed FROM pick
)
SELECT done.ids, clock_timestamp(), now(), place.slug, place.allowed,
    told.priority, told.run_at, told.job_id, told.claimed,
    told.job_type, told.attempt, told.max_attempts, told.crashes, told."group", told.concurrency_key,
    CASE WHEN octet_length(job.payload) <= 16384 THEN job.payload END
FROM (SELECT array_agg(job_id) AS ids FROM kept) done
LEFT JOIN place ON true
LEFT JOIN told ON true
LEFT JOIN LATERAL (
    SELECT CASE WHEN pg_column_size(payload) <= 8192 THEN payload::text END AS payload FROM {job}
    WHERE told.claimed AND due_at = told.due_at AND id >= told.job_id AND id <= told.job_id
    ORDER BY id
    LIMIT 1
) job ON true
ORDER BY told.ord, told.run_at, told.job_id
