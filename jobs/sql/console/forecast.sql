-- forecast: of each minute of the window how many timers come due, up to a cap, and how the first of them divide by
-- queue, type and tenant. Rides on the timers' key, a minute at a time.
SELECT slot.start, due.count, sample.parts
FROM generate_series(%(start)s::timestamptz, %(end)s::timestamptz - interval '1 second', interval '1 minute') slot (start)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM jobs_timer timer
        WHERE timer.due_at >= %(start)s AND timer.due_at < %(end)s
            AND timer.due_at >= slot.start AND timer.due_at < slot.start + interval '1 minute'
        ORDER BY timer.due_at LIMIT %(cap)s
    ) head
) due
CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_array(queue, job_type, tenant_id, n)) AS parts FROM (
        SELECT queue, job_type, tenant_id, count(*) AS n FROM (
            SELECT timer.queue, timer.job_type, timer.tenant_id FROM jobs_timer timer
            WHERE timer.due_at >= %(start)s AND timer.due_at < %(end)s
                AND timer.due_at >= slot.start AND timer.due_at < slot.start + interval '1 minute'
            ORDER BY timer.due_at LIMIT %(sample)s
        ) head
        GROUP BY 1, 2, 3
    ) grouped
) sample
ORDER BY slot.start
