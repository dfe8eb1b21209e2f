-- delete tenants: which of these have a job of any kept day, whatever became of it, or a cron definition. One probe of
-- each day's index a tenant.
SELECT tenant.id
FROM unnest(%(ids)s::bigint[]) tenant(id)
WHERE EXISTS (SELECT FROM jobs_crondefinition WHERE tenant_id = tenant.id)
    OR EXISTS (SELECT FROM jobs_job WHERE tenant_id = tenant.id AND due_at >= %(start)s AND due_at < %(end)s)
