-- schedule: keys of a period that has passed change hands; a key that is still held is left alone.
-- The winner of two concurrent callers updates, the loser sees the new expiry and gets zero rows.
UPDATE jobs_uniquekey held
SET job_id = wanted.job_id, expires_at = clock_timestamp() + wanted.lifetime
FROM unnest(%(tenant_ids)s::bigint[], %(job_types)s::text[], %(keys)s::text[], %(ids)s::uuid[], %(lifetimes)s::interval[])
    wanted(tenant_id, job_type, key, job_id, lifetime)
WHERE held.tenant_id = wanted.tenant_id AND held.job_type = wanted.job_type AND held.key = wanted.key
  AND held.expires_at <= clock_timestamp()
RETURNING held.job_id
