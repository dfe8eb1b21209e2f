-- schedule, retry: take unique keys, in the order of (tenant, type, key) so that two callers cannot deadlock.
-- A concurrent caller with the same key is waited for. Zero rows for a key: it is taken; the *next* statement may look
-- by whom, this one's snapshot may be too old to see it.
INSERT INTO jobs_uniquekey (tenant_id, job_type, key, job_id, expires_at)
SELECT tenant_id, job_type, key, job_id, clock_timestamp() + lifetime
FROM unnest(%(tenant_ids)s::bigint[], %(job_types)s::text[], %(keys)s::text[], %(ids)s::uuid[], %(lifetimes)s::interval[])
    wanted(tenant_id, job_type, key, job_id, lifetime)
ORDER BY tenant_id, job_type, key
ON CONFLICT (tenant_id, job_type, key) DO NOTHING
RETURNING job_id
