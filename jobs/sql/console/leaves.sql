-- leaves: rows (as the planner knows them) and bytes of each day's tables.
SELECT right(relname, 10), sum(greatest(reltuples, 0))::bigint, sum(pg_total_relation_size(oid))::bigint,
    max(CASE WHEN starts_with(relname, 'jobs_job__') THEN greatest(reltuples, 0) ELSE 0 END)::bigint
FROM pg_class
WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'jobs_job'::regclass)
    AND relname ~ '^jobs_(job|timer|outcome|attempt|crontick)__'
GROUP BY 1 ORDER BY 1
