-- count: the entries that may run again in [start, end), by minute: for each queue, type and tenant and for all. One pass
-- over the entries.
SELECT date_bin('1 minute', run_at, 'epoch') AS at, grouping(queue, job_type, tenant_id),
    coalesce(queue, job_type, tenant_id::text), count(*)
FROM jobs_queueentry
WHERE lease_token IS NULL AND run_at >= %(start)s AND run_at < %(end)s
GROUP BY GROUPING SETS ((1), (1, queue), (1, job_type), (1, tenant_id))
