-- forecast top: which queues, types and tenants the next hour's jobs belong to, the largest of each.
SELECT kind, name, due FROM (
    SELECT kind, name, sum(due)::bigint AS due,
        row_number() OVER (PARTITION BY kind ORDER BY sum(due) DESC, name) AS place
    FROM jobs_forecast WHERE (kind <> 'all' AND %(every)s) OR (kind = 'tenant' AND name = ANY(%(slugs)s::text[]))
    GROUP BY kind, name
) ranked
WHERE place <= %(top)s ORDER BY kind, place
