-- full tenants: those that run as many jobs as they may. Counts what is leased, which the fleet bounds.
SELECT tenant.id, tenant.slug, tenant.max_running, coalesce(held.running, 0)
FROM jobs_tenant tenant
LEFT JOIN (
    SELECT tenant_id, count(*) AS running FROM jobs_queueentry WHERE lease_token IS NOT NULL GROUP BY tenant_id
) held ON held.tenant_id = tenant.id
WHERE tenant.max_running IS NOT NULL AND coalesce(held.running, 0) >= tenant.max_running
ORDER BY held.running DESC NULLS LAST, tenant.slug LIMIT %(limit)s
