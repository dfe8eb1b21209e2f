-- checkjobs: what breaks the invariant among jobs due in [start, end): each job has exactly one of timer, queue entry
-- and outcome, and no satellite is without its job. One statement, so one snapshot: a job that moves is seen in one
-- place. The first few of them, in an order: they are compared with those of another look. Bounds are given to each partitioned table, as literals; a queue entry's
-- due time leads its id.
WITH job AS MATERIALIZED (
    SELECT id FROM jobs_job WHERE due_at >= %(start)s AND due_at < %(end)s
),
place AS MATERIALIZED (
    SELECT job_id, 'timer' AS name FROM jobs_timer WHERE due_at >= %(start)s AND due_at < %(end)s
    UNION ALL
    SELECT job_id, 'entry' FROM jobs_queueentry WHERE job_id >= %(first)s AND job_id < %(last)s
    UNION ALL
    SELECT job_id, 'outcome' FROM jobs_outcome WHERE due_at >= %(start)s AND due_at < %(end)s
),
places AS MATERIALIZED (
    SELECT job_id, string_agg(name, ' and ' ORDER BY name) AS names, count(*) AS count FROM place GROUP BY job_id
)
SELECT job.id, 'is in no place' FROM job LEFT JOIN places ON places.job_id = job.id WHERE places.job_id IS NULL
UNION ALL
SELECT places.job_id, 'has ' || places.names FROM places WHERE places.count > 1
UNION ALL
SELECT places.job_id, 'has ' || places.names || ' but no job row'
FROM places LEFT JOIN job ON job.id = places.job_id WHERE job.id IS NULL
UNION ALL
SELECT attempt.job_id, 'has an attempt but no job row'
FROM jobs_attempt attempt LEFT JOIN job ON job.id = attempt.job_id
WHERE attempt.due_at >= %(start)s AND attempt.due_at < %(end)s AND job.id IS NULL
ORDER BY 1, 2
LIMIT %(most)s
