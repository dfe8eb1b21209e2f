-- why: what the rules of the claim say of one tenant and one queue, judged as by a claim that has the locks and comes to
-- this entry in its line; and who alive could run it. Locks nothing.
WITH
{rules}
line AS MATERIALIZED (
    SELECT count(*) AS ahead FROM (
        SELECT FROM jobs_queueentry
        WHERE queue = %(queue)s AND tenant_id = ANY(%(tenants)s::bigint[]) AND lease_token IS NULL AND parked IS NULL
            AND run_at <= now() AND priority >= %(priority)s
            AND (priority > %(priority)s OR (run_at, job_id) < (%(run_at)s::timestamptz, %(job_id)s::uuid))
        LIMIT %(most)s
    ) ahead
)
SELECT now(), line.ahead,
    tenants.slug, tenants.allowed, tenants.wait, tenants.stopped, tenants.max_running, tenants.running,
    tenants.max_here, tenants.here, tenants.rate, tenants.tokens,
    room.size, room.wait, room.stopped, room.draining, room.max_running, room.running, room.rate, room.tokens,
    EXISTS (
        SELECT FROM jobs_process
        WHERE ended_at IS NULL AND lease_expires_at > clock_timestamp() AND %(job_type)s = ANY(types)
    ),
    EXISTS (
        SELECT FROM jobs_process
        WHERE ended_at IS NULL AND lease_expires_at > clock_timestamp() AND %(job_type)s = ANY(types)
            AND (queues = '{}' OR %(queue)s = ANY(queues))
    ),
    ARRAY(
        SELECT job_id FROM jobs_queueentry
        WHERE tenant_id = ANY(%(tenants)s::bigint[]) AND concurrency_key = %(concurrency_key)s::text AND parked IS NULL
        LIMIT %(holders)s
    ),
    coalesce((
        SELECT json_agg(json_build_array(scope, key, reason, by, since, until) ORDER BY id) FROM jobs_hold
        WHERE drained_at IS NULL AND since <= now() AND (until IS NULL OR until > now())
            AND (
                scope = 'all' OR scope = 'queue' AND key = %(queue)s OR scope = 'type' AND key = %(job_type)s
                OR scope = 'tenant' AND key = tenants.slug OR scope = 'group' AND key = %(group)s
            )
    ), '[]')
FROM tenants CROSS JOIN room CROSS JOIN line
