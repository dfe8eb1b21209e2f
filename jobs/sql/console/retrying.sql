-- retrying: jobs that wait for another attempt, by what went wrong last. Looks at the next of each queue, up to a cap.
WITH RECURSIVE
{queues},
entries AS (
    SELECT entry.* FROM queues CROSS JOIN LATERAL (
        SELECT job_id, due_at, job_type, attempt, max_attempts, run_at FROM (
            SELECT * FROM jobs_queueentry
            WHERE queue = queues.queue AND process_id IS NULL AND parked IS NULL AND run_at > now()
            ORDER BY run_at LIMIT %(each)s
        ) head
        WHERE head.waits = 'retry'
    ) entry
    LIMIT %(cap)s
)
SELECT entries.job_type, last.fingerprint, max(last.error_class), max(last.message), count(*), min(last.finished_at),
    max(last.finished_at), min(entries.run_at), max(entries.attempt), (array_agg(entries.job_id))[1]
FROM entries
CROSS JOIN LATERAL (
    SELECT fingerprint, error_class, left(message, 300) AS message, finished_at FROM jobs_attempt attempt
    WHERE attempt.due_at >= %(start)s AND attempt.due_at < %(end)s
        AND attempt.due_at = entries.due_at AND attempt.job_id = entries.job_id
    ORDER BY finished_at DESC LIMIT 1
) last
GROUP BY 1, 2 ORDER BY count(*) DESC, 1 LIMIT 50
