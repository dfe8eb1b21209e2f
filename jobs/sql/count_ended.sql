-- count: what ended in [start, end), of the jobs of one due day, by minute: for each queue, type and tenant and for all,
-- with how late and how long as steps of a histogram. Rides on the summaries (BRIN) of the leaves by `finished_at`, then
-- on the jobs' key. Lateness is told by first attempts: a failed one has its row among the attempts, so that of the
-- outcomes only completed ones count; a job that an operator has moved started when the operator wished.
WITH ended AS MATERIALIZED (
    SELECT date_bin('1 minute', outcome.finished_at, 'epoch') AS at, job.queue, job.job_type, job.tenant_id, outcome.state,
        width_bucket(
            CASE
                WHEN outcome.attempt = 1 AND outcome.state = 'completed' AND outcome.action_id IS NULL
                THEN extract(epoch FROM outcome.started_at - greatest(job.due_at, job.created_at))
            END::float8,
            %(bounds)s::float8[]
        ) AS late,
        width_bucket(
            extract(epoch FROM outcome.finished_at - outcome.started_at)::float8, %(bounds)s::float8[]
        ) AS ran,
        extract(epoch FROM outcome.finished_at - outcome.started_at)::float8 AS seconds
    FROM {outcome} outcome
    JOIN {job} job ON job.due_at = outcome.due_at AND job.id = outcome.job_id
    WHERE outcome.finished_at >= %(start)s AND outcome.finished_at < %(end)s
    UNION ALL
    SELECT date_bin('1 minute', attempt.finished_at, 'epoch'), job.queue, job.job_type, job.tenant_id, 'error',
        width_bucket(
            CASE
                WHEN attempt.attempt = 1
                THEN extract(epoch FROM attempt.started_at - greatest(job.due_at, job.created_at))
            END::float8,
            %(bounds)s::float8[]
        ),
        NULL, NULL
    FROM {attempt} attempt
    JOIN {job} job ON job.due_at = attempt.due_at AND job.id = attempt.job_id
    WHERE attempt.finished_at >= %(start)s AND attempt.finished_at < %(end)s
)
SELECT at, grouping(queue, job_type, tenant_id), coalesce(queue, job_type, tenant_id::text), grouping(late, ran),
    coalesce(late, ran), count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed'),
    count(*) FILTER (WHERE state = 'cancelled'), count(*) FILTER (WHERE state = 'error'), sum(seconds), count(*)
FROM ended
GROUP BY GROUPING SETS (
    (at), (at, queue), (at, job_type), (at, tenant_id),
    (at, late), (at, queue, late), (at, job_type, late), (at, tenant_id, late),
    (at, ran), (at, queue, ran), (at, job_type, ran), (at, tenant_id, ran)
)
