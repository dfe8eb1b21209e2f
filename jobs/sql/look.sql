-- look: of each of my queues, the pairs in which something became due since the last look (or was committed late), and
-- the next entries that will; the flag says of the former that a type is unknown, of the latter that they must start at
-- once. Of a pair in which only unknown types became due the time is null, and of an unknown entry that will the pair is:
-- they wake nobody, or each of them would cost a claim that walks all of them. Rides on jobs_queueentry_next; never reads what was due before `since`, so each entry is
-- read about once. A row without anything else says only when it is. Locks nothing.
-- The snapshot is for the proof: once a later xmin has reached this next_xid, all that wrote when this look was made has
-- ended. It counts transactions that write: a reader that pins the horizon does not hold it up. The snapshot's own xmax
-- would not do: it follows the last that has ended, and who was open may lie beyond it. age() tells how far the next one
-- to be given out is from there.
SELECT snapshot.*, queue.name, found.tenant_id, found.priority, found.run_at, NULL::uuid, found.flag,
    coalesce(tenant.weight, 1), coalesce(tenant.limited, false)
FROM (
    SELECT clock_timestamp() AS moment, now() AS now,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            + greatest(0, age(pg_snapshot_xmax(pg_current_snapshot())::xid)) AS next_xid
) snapshot
CROSS JOIN unnest(%(queues)s::text[]) queue(name)
LEFT JOIN LATERAL (
    (
        SELECT tenant_id, priority, min(run_at) FILTER (WHERE job_type = ANY(%(types)s::text[])) AS run_at,
            bool_or(job_type <> ALL(%(types)s::text[])) AS flag
        FROM jobs_queueentry
        WHERE queue = queue.name AND process_id IS NULL AND parked IS NULL
            AND run_at > %(since)s AND run_at <= now() AND (crashes >= 2) = %(suspects)s
        GROUP BY tenant_id, priority
    )
    UNION ALL
    (
        SELECT CASE WHEN job_type = ANY(%(types)s::text[]) THEN tenant_id END, priority, run_at,
            attempt + 1 >= max_attempts OR crashes > 0
        FROM jobs_queueentry
        WHERE queue = queue.name AND process_id IS NULL AND parked IS NULL AND run_at > now()
        ORDER BY run_at
        LIMIT %(coming)s
    )
) found ON true
LEFT JOIN LATERAL (
    SELECT weight,
        coalesce(CASE WHEN temporary_until > now() THEN temporary_max_running ELSE max_running END, rate) IS NOT NULL
            OR (SELECT EXISTS (SELECT FROM jobs_tenantqueuelimit)) AND EXISTS (
                SELECT FROM jobs_tenantqueuelimit WHERE queue = queue.name AND tenant_id = found.tenant_id
            ) AS limited
    FROM jobs_tenant WHERE id = found.tenant_id LIMIT 1
) tenant ON true
