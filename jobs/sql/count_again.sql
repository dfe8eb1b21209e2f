-- count: how much there is of [start, end) in one due day by now, by minute, without looking at any job: whether something
-- was committed after the first look. Rides on the summaries of the leaves, and on the jobs' key alone.
SELECT at, sum(due)::bigint, sum(ended)::bigint, sum(errors)::bigint
FROM (
    SELECT date_bin('1 minute', due_at, 'epoch') AS at, count(*) AS due, 0 AS ended, 0 AS errors
    FROM {job} WHERE due_at >= %(start)s AND due_at < %(end)s GROUP BY 1
    UNION ALL
    SELECT date_bin('1 minute', finished_at, 'epoch'), 0, count(*), 0
    FROM {outcome} WHERE finished_at >= %(start)s AND finished_at < %(end)s GROUP BY 1
    UNION ALL
    SELECT date_bin('1 minute', finished_at, 'epoch'), 0, 0, count(*)
    FROM {attempt} WHERE finished_at >= %(start)s AND finished_at < %(end)s GROUP BY 1
) found
GROUP BY at
