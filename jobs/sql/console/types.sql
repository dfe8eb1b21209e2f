-- types: of each that is parked because no live worker knew it, and of each that live workers know: how many, and by how many.
SELECT name, max(parked), max(workers) FROM (
    SELECT job_type AS name, count(*) AS parked, 0 AS workers FROM (
        SELECT job_type FROM jobs_queueentry WHERE parked = 'type' ORDER BY job_type LIMIT %(cap)s
    ) head GROUP BY job_type
    UNION ALL
    SELECT unnest(types), 0, count(*) FROM jobs_process
    WHERE ended_at IS NULL AND lease_expires_at > now() AND kind = 'worker' GROUP BY 1
) found
GROUP BY name ORDER BY name LIMIT %(names)s
