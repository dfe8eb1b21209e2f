-- which of the tenants at their limit may run again: one statement for all, the same count from the same marks as in a
-- claim. Locks nothing.
SELECT tied.id
FROM unnest(%(tenants)s::bigint[], %(oldest)s::bigint[]) tied(id, oldest)
LEFT JOIN LATERAL (SELECT max_running FROM jobs_tenant WHERE id = tied.id LIMIT 1) tenant ON true
WHERE tenant.max_running IS NULL OR tenant.max_running > (
    SELECT count(*) FROM (
        SELECT FROM jobs_queueentry entry
        WHERE entry.tenant_id = tied.id AND entry.lease_token IS NOT NULL AND entry.claim_no >= tied.oldest
        LIMIT tenant.max_running
    ) leased
)
