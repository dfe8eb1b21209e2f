-- count: the hour from `start` on, as the sum of its minutes. Done again it writes the same.
WITH minute AS MATERIALIZED (
    SELECT kind, name, due, completed, failed, cancelled, errors, late, ran, ran_seconds FROM jobs_rollup
    WHERE step = 60 AND at >= %(start)s AND at < %(end)s
),
late AS (
    SELECT kind, name, array_agg(total ORDER BY n) AS counts
    FROM (
        SELECT kind, name, n, sum(count)::int AS total
        FROM minute CROSS JOIN LATERAL unnest(minute.late) WITH ORDINALITY step(count, n)
        GROUP BY kind, name, n
    ) each
    GROUP BY kind, name
),
ran AS (
    SELECT kind, name, array_agg(total ORDER BY n) AS counts
    FROM (
        SELECT kind, name, n, sum(count)::int AS total
        FROM minute CROSS JOIN LATERAL unnest(minute.ran) WITH ORDINALITY step(count, n)
        GROUP BY kind, name, n
    ) each
    GROUP BY kind, name
),
made AS (
    SELECT kind, name, sum(due) AS due, sum(completed) AS completed, sum(failed) AS failed, sum(cancelled) AS cancelled,
        sum(errors) AS errors, sum(ran_seconds) AS ran_seconds
    FROM minute GROUP BY kind, name
)
INSERT INTO jobs_rollup (kind, step, name, at, due, completed, failed, cancelled, errors, late, ran, ran_seconds)
SELECT kind, 3600, name, %(start)s, due, completed, failed, cancelled, errors, coalesce(late.counts, '{}'),
    coalesce(ran.counts, '{}'), ran_seconds
FROM made LEFT JOIN late USING (kind, name) LEFT JOIN ran USING (kind, name)
ON CONFLICT (kind, step, name, at) DO UPDATE SET
    due = excluded.due, completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled,
    errors = excluded.errors, late = excluded.late, ran = excluded.ran, ran_seconds = excluded.ran_seconds
