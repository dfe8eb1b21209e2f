-- dispatch lag: the oldest timer of the last hour whose time has come. It rides on the key of two days at most; one that
-- waits longer shows as an hour.
SELECT min(due_at), clock_timestamp() FROM (
    SELECT due_at FROM jobs_timer
    WHERE due_at >= %(start)s AND due_at < %(end)s ORDER BY due_at LIMIT 1
) first
