-- dispatch: the first due timer of one day whose job has an entry as well, which must not be.
SELECT timer.job_id
FROM {timer} timer
WHERE timer.due_at < %(until)s AND timer.job_id <> ALL(%(aside)s::uuid[])
    AND EXISTS (SELECT FROM jobs_queueentry entry WHERE entry.job_id = timer.job_id)
ORDER BY timer.due_at, timer.job_id
LIMIT 1
