-- count: what ended in [start, end), of the jobs of one due day, by minute: for each queue, type and tenant and for all,
-- with how late and how long as steps of a histogram. Rides on the summaries (BRIN) of the leaves by `finished_at`, then
-- on the jobs' key. Lateness is told by first attempts: a failed one has its row among the attempts, so that of the
-- outcomes only completed ones count; a job that an operator has moved started when the operator wished. Intervals are
-- compared as they are, and only sums become numbers: that is half of what it would cost.
WITH ended AS MATERIALIZED (
    SELECT date_bin('1 minute', outcome.finished_at, 'epoch') AS at, job.queue, job.job_type, job.tenant_id, outcome.state,
        width_bucket(
            CASE
                WHEN outcome.attempt = 1 AND outcome.state = 'completed' AND outcome.action_id IS NULL
                THEN outcome.started_at - greatest(job.due_at, job.created_at)
            END,
            %(bounds)s::interval[]
        ) AS late,
        width_bucket(outcome.finished_at - outcome.started_at, %(bounds)s::interval[]) AS ran,
        outcome.finished_at - outcome.started_at AS took
    FROM {outcome} outcome
    JOIN {job} job ON job.due_at = outcome.due_at AND job.id = outcome.job_id
    WHERE outcome.finished_at >= %(start)s AND outcome.finished_at < %(end)s
    UNION ALL
    SELECT date_bin('1 minute', attempt.finished_at, 'epoch'), job.queue, job.job_type, job.tenant_id, 'error',
        width_bucket(
            CASE WHEN attempt.attempt = 1 THEN attempt.started_at - greatest(job.due_at, job.created_at) END,
            %(bounds)s::interval[]
        ),
        NULL, NULL
    FROM {attempt} attempt
    JOIN {job} job ON job.due_at = attempt.due_at AND job.id = attempt.job_id
    WHERE attempt.finished_at >= %(start)s AND attempt.finished_at < %(end)s
),
cell AS MATERIALIZED (
    SELECT at, queue, job_type, tenant_id, state, late, ran, count(*) AS jobs, sum(took) AS took
    FROM ended
    GROUP BY at, queue, job_type, tenant_id, state, late, ran
)
SELECT at, grouping(queue, job_type, tenant_id), coalesce(queue, job_type, tenant_id::text), state, late, ran,
    sum(jobs)::bigint, extract(epoch FROM sum(took))::float8
FROM cell
GROUP BY GROUPING SETS (
    (at, state, late, ran), (at, queue, state, late, ran), (at, job_type, state, late, ran),
    (at, tenant_id, state, late, ran)
)
