-- checkjobs: concurrency keys of which more run or may run than their types allow, and entries that wait for a key with
-- room although their time came half a minute ago and a live worker knows their type. More than a type allows are no
-- breach when it allowed more as they were admitted: then none was admitted since it allows less. One statement, so one
-- snapshot.
WITH entry AS MATERIALIZED (
    SELECT entry.job_id, entry.tenant_id, entry.concurrency_key, entry.parked, entry.run_at, entry.job_type,
        coalesce(of_type.most, 1) AS most, of_type.changed_at
    FROM jobs_queueentry entry
    LEFT JOIN jobs_keylimit of_type ON of_type.job_type = entry.job_type
    WHERE entry.concurrency_key IS NOT NULL
),
held AS MATERIALIZED (
    SELECT tenant_id, concurrency_key, count(*) AS count, min(most) AS most, max(run_at) AS last_at,
        max(changed_at) AS changed_at, max(job_id::text)::uuid AS job_id
    FROM entry
    WHERE parked IS NULL
    GROUP BY tenant_id, concurrency_key
),
waiting AS MATERIALIZED (
    SELECT tenant_id, concurrency_key, min(most) AS most, min(job_id::text)::uuid AS job_id
    FROM entry
    WHERE parked = 'key' AND run_at <= clock_timestamp() - interval '30 seconds'
        AND job_type = ANY(
            SELECT unnest(types) FROM jobs_process WHERE ended_at IS NULL AND lease_expires_at > clock_timestamp()
        )
    GROUP BY tenant_id, concurrency_key
)
SELECT job_id, 'runs or may run with ' || count - 1 || ' others of its concurrency key ' || quote_literal(concurrency_key)
    || ', which allows ' || most
FROM held
WHERE count > most AND (changed_at IS NULL OR last_at > changed_at)
UNION ALL
SELECT waiting.job_id, 'waits for its concurrency key ' || quote_literal(waiting.concurrency_key) || ', which has room: '
    || coalesce(held.count, 0) || ' of ' || waiting.most
FROM waiting
LEFT JOIN held ON held.tenant_id = waiting.tenant_id AND held.concurrency_key = waiting.concurrency_key
WHERE coalesce(held.count, 0) < waiting.most
