-- waiting: jobs whose time has come and that nobody has, by queue, tenant, type and what sets them aside: how many of a
-- bounded look, and the oldest of each. Of each queue (or, with tenants, of each of them in each queue) the first ones
-- alone, by the claim's own indexes; of those set aside the first of each reason.
WITH RECURSIVE
{queues},
asked (queue) AS (
    SELECT %(queue)s::text WHERE %(queue)s::text IS NOT NULL
    UNION ALL
    SELECT queue FROM queues WHERE %(queue)s::text IS NULL
    LIMIT %(queues)s
),
ready AS (
    SELECT entry.* FROM asked
    CROSS JOIN LATERAL (
        SELECT job_id, queue, tenant_id, job_type, parked, run_at FROM jobs_queueentry
        WHERE queue = asked.queue AND process_id IS NULL AND parked IS NULL AND run_at <= now()
        ORDER BY run_at LIMIT %(each)s
    ) entry
    WHERE %(tenants)s::bigint[] IS NULL
    UNION ALL
    SELECT entry.* FROM asked
    CROSS JOIN unnest(%(tenants)s::bigint[]) tenant (id)
    CROSS JOIN LATERAL (
        SELECT job_id, queue, tenant_id, job_type, parked, run_at FROM jobs_queueentry
        WHERE queue = asked.queue AND tenant_id = tenant.id AND lease_token IS NULL AND parked IS NULL
            AND run_at <= now()
        ORDER BY priority DESC, run_at, job_id LIMIT %(each)s
    ) entry
),
aside AS (
    (
        SELECT job_id, queue, tenant_id, job_type, parked, run_at FROM jobs_queueentry
        WHERE parked = 'type' ORDER BY job_type LIMIT %(cap)s
    )
    UNION ALL
    (
        SELECT job_id, queue, tenant_id, job_type, parked, run_at FROM jobs_queueentry
        WHERE parked = 'hold' ORDER BY priority DESC, run_at, job_id LIMIT %(cap)s
    )
    UNION ALL
    (
        SELECT job_id, queue, tenant_id, job_type, parked, run_at FROM jobs_queueentry
        WHERE parked = 'key' AND process_id IS NULL ORDER BY run_at LIMIT %(cap)s
    )
),
kinds AS (
    SELECT queue, tenant_id, job_type, parked, count(*) AS jobs, min(run_at) AS oldest,
        (array_agg(job_id ORDER BY run_at, job_id))[1] AS job_id
    FROM (
        SELECT * FROM ready
        UNION ALL
        SELECT * FROM aside
        WHERE run_at <= now() AND (%(queue)s::text IS NULL OR queue = %(queue)s)
            AND (%(tenants)s::bigint[] IS NULL OR tenant_id = ANY(%(tenants)s::bigint[]))
    ) looked
    GROUP BY queue, tenant_id, job_type, parked
)
SELECT job_id, jobs, oldest, sum(jobs) OVER ()::bigint, count(*) OVER ()
FROM kinds ORDER BY jobs DESC, oldest LIMIT %(kinds)s
