-- fence: where the stride of a claim ends in each of these pairs, of a queue in which unknown types lie among what is due:
-- at the last of its next entries, so many of them; NULL when there are fewer. A claim that looked for one more that it
-- knows would walk all that it does not. Rides on jobs_queueentry_ready. Locks nothing.
SELECT fence.run_at, fence.job_id
FROM unnest(
    %(tenants)s::bigint[], %(priorities)s::bigint[], %(run_ats)s::timestamptz[], %(job_ids)s::uuid[]
) WITH ORDINALITY pair(tenant_id, priority, run_at, job_id, ord)
LEFT JOIN LATERAL (
    SELECT run_at, job_id
    FROM jobs_queueentry
    WHERE queue = %(queue)s AND lease_token IS NULL AND parked IS NULL
        AND tenant_id = pair.tenant_id AND priority = pair.priority::smallint
        AND (run_at, job_id) > (pair.run_at, pair.job_id) AND run_at <= now()
    ORDER BY run_at, job_id
    OFFSET %(stride)s - 1
    LIMIT 1
) fence ON true
ORDER BY pair.ord
