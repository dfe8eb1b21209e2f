-- ended of type: the latest jobs of one type that have ended, by due time: how, how late and how long.
SELECT job.id, job.due_at, job.created_at, outcome.state, outcome.attempt, outcome.started_at, outcome.finished_at
FROM (
    SELECT id, due_at, created_at FROM jobs_job
    WHERE job_type = %(name)s AND due_at >= %(start)s AND due_at < %(end)s
    ORDER BY due_at DESC LIMIT %(limit)s
) job
JOIN LATERAL (
    SELECT state, attempt, started_at, finished_at FROM jobs_outcome each
    WHERE each.due_at >= %(start)s AND each.due_at < %(end)s AND each.due_at = job.due_at AND each.job_id = job.id
    LIMIT 1
) outcome ON true
ORDER BY job.due_at DESC
