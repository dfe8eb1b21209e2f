-- checkjobs: jobs due in [start, end) by state.
SELECT 'scheduled', count(*) FROM jobs_timer WHERE due_at >= %(start)s AND due_at < %(end)s
UNION ALL
SELECT
    CASE
        WHEN lease_token IS NOT NULL THEN 'running'
        WHEN run_at <= clock_timestamp() THEN 'queued'
        WHEN waits = 'retry' THEN 'retryable'
        ELSE 'scheduled'
    END,
    count(*)
FROM jobs_queueentry WHERE job_id >= %(first)s AND job_id < %(last)s GROUP BY 1
UNION ALL
SELECT state, count(*) FROM jobs_outcome WHERE due_at >= %(start)s AND due_at < %(end)s GROUP BY 1
