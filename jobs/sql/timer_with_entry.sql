-- dispatch: the first due timer of one day whose job has an entry as well, which must not be. One probe of the entry's
-- key per timer, by the inner LIMIT: as a semi-join it was planned as one walk of the whole queue per timer.
SELECT timer.job_id
FROM {timer} timer
CROSS JOIN LATERAL (SELECT FROM jobs_queueentry WHERE job_id = timer.job_id LIMIT 1) entry
WHERE timer.due_at < %(until)s AND timer.job_id <> ALL(%(aside)s::uuid[])
ORDER BY timer.due_at, timer.job_id
LIMIT 1
