-- claim, limited tenants only: a statement of its own, so that the count in the next one has a snapshot that is younger
-- than the lock (in one statement a limit of 1 was seen with 2 running). In id order; never waits. Who did not get
-- the queue takes no tenant either.
SELECT set_config('punctual.tenants', coalesce((
    SELECT string_agg(id::text, ',') FROM (
        SELECT tenant.id FROM jobs_tenant tenant
        WHERE id = ANY(%(limited)s::bigint[])
            AND (
                coalesce(max_running, temporary_max_running, rate) IS NOT NULL
                OR EXISTS (SELECT FROM jobs_tenantqueuelimit WHERE queue = %(queue)s AND tenant_id = tenant.id)
                OR EXISTS (
                    SELECT FROM jobs_hold
                    WHERE scope = 'tenant' AND key = tenant.slug AND drained_at IS NULL AND until <= now() AND drain IS NOT NULL
                )
            )
            AND (NOT %(queue_limited)s OR current_setting('punctual.queue', true) = %(queue)s)
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
    ) locked
), ''), true)
