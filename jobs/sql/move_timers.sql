-- prioritize and move, place 1 of 2: jobs that were never dispatched. The Job row goes on saying what was asked for; the
-- timer says what is. A dispatcher that has a row is waited for, and then the row is gone: look in the queue. NULL leaves
-- a column as it is.
WITH wanted AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(priorities)s::smallint[], %(queues)s::text[]) w(job_id, priority, queue)
),
mine AS MATERIALIZED (
    SELECT job_id FROM jobs_timer
    WHERE job_id = ANY(%(ids)s::uuid[]) AND due_at = ANY(%(dues)s::timestamptz[])
    ORDER BY job_id
    FOR UPDATE
)
UPDATE jobs_timer timer
SET priority = coalesce(wanted.priority, timer.priority), queue = coalesce(wanted.queue, timer.queue)
FROM wanted
WHERE timer.job_id = wanted.job_id AND timer.job_id = ANY(ARRAY(SELECT job_id FROM mine))
    AND timer.due_at = ANY(%(dues)s::timestamptz[])
RETURNING timer.job_id
