-- The state of each job for people who write SQL. Name `due_at` bounds of all three: job, timer and outcome are
-- partitioned, and a range on one is not carried to the others. For one job: WHERE id = … AND due_at = ….
CREATE VIEW jobs_job_state AS
SELECT job.id, job.due_at, job.tenant_id, job.job_type, job.queue, job."group",
    timer.due_at AS timer_due_at, outcome.due_at AS outcome_due_at,
    CASE
        WHEN outcome.state IS NOT NULL THEN outcome.state
        WHEN entry.lease_token IS NOT NULL THEN 'running'
        WHEN entry.run_at <= clock_timestamp() THEN 'queued'
        WHEN entry.waits = 'retry' THEN 'retryable'
        WHEN entry.job_id IS NOT NULL OR timer.job_id IS NOT NULL THEN 'scheduled'
    END AS state,
    entry.run_at, coalesce(outcome.attempt, entry.attempt, 0) AS attempt, outcome.finished_at, outcome.error
FROM jobs_job job
LEFT JOIN jobs_timer timer ON timer.job_id = job.id AND timer.due_at = job.due_at
LEFT JOIN jobs_queueentry entry ON entry.job_id = job.id
LEFT JOIN jobs_outcome outcome ON outcome.job_id = job.id AND outcome.due_at = job.due_at
