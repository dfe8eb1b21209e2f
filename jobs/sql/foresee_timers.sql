-- count: the jobs of one day that come due in [start, end), by minute: for each queue, type and tenant and for all. Rides
-- on the leaf's key.
SELECT date_bin('1 minute', due_at, 'epoch') AS at, grouping(queue, job_type, tenant_id),
    coalesce(queue, job_type, tenant_id::text), count(*)
FROM {timer}
WHERE due_at >= %(start)s AND due_at < %(end)s
GROUP BY GROUPING SETS ((1), (1, queue), (1, job_type), (1, tenant_id))
