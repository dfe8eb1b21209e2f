-- names: what bears these names: a tenant, a queue, and, of those in %(keys)s, the jobs that hold them as a key. Tenants and
-- keys of %(scope)s alone; null: all. No index begins with the key: nothing is read of the keys when none is asked for.
SELECT asked.name,
    ARRAY (
        SELECT held.job_id FROM jobs_uniquekey held
        WHERE asked.name = ANY (%(keys)s::text[]) AND held.key = asked.name
            AND (%(scope)s::bigint[] IS NULL OR held.tenant_id = ANY (%(scope)s::bigint[]))
        LIMIT %(most)s
    ),
    (
        SELECT tenant.id FROM jobs_tenant tenant
        WHERE tenant.slug = asked.name AND (%(scope)s::bigint[] IS NULL OR tenant.id = ANY (%(scope)s::bigint[]))
    ),
    EXISTS (SELECT FROM jobs_queue queue WHERE queue.name = asked.name)
FROM unnest(%(names)s::text[]) asked (name)
