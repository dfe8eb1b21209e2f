-- tick: which of these jobs have not ended: they have a timer or an entry, also while they wait for another attempt.
-- One snapshot for both, so a timer that is being dispatched is seen in one of them.
SELECT job_id FROM jobs_queueentry
WHERE job_id = ANY(%(ids)s::uuid[])
UNION ALL
SELECT job_id FROM jobs_timer
WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])
