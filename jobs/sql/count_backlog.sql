-- count: what is in the queues now, for each queue, type and tenant and for all. One pass over the entries, which are
-- few; the loop spaces these passes so that they take a twentieth of the time at most.
SELECT grouping(queue, job_type, tenant_id), coalesce(queue, job_type, tenant_id::text),
    count(*) FILTER (WHERE place = 'waiting'), min(run_at) FILTER (WHERE place = 'waiting'),
    count(*) FILTER (WHERE place = 'running'), count(*) FILTER (WHERE place = 'retrying'),
    count(*) FILTER (WHERE place = 'later'), count(*) FILTER (WHERE place = 'parked')
FROM (
    SELECT queue, job_type, tenant_id, run_at,
        CASE
            WHEN lease_token IS NOT NULL THEN 'running'
            WHEN parked IS NOT NULL THEN 'parked'
            WHEN run_at <= clock_timestamp() THEN 'waiting'
            WHEN waits = 'retry' THEN 'retrying'
            ELSE 'later'
        END AS place
    FROM jobs_queueentry
) entry
GROUP BY GROUPING SETS ((), (queue), (job_type), (tenant_id))
