-- claim, after its commit: what was asked for, from one day's leaf by name.
SELECT claimed.id, job.payload, tenant.slug
FROM unnest(%(dues)s::timestamptz[], %(ids)s::uuid[]) claimed(due_at, id)
CROSS JOIN LATERAL (
    SELECT payload, tenant_id FROM {job} WHERE due_at = claimed.due_at AND id = claimed.id LIMIT 1
) job
LEFT JOIN jobs_tenant tenant ON tenant.id = job.tenant_id
