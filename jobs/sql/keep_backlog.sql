-- count: the backlog as it was just counted, instead of what it was. Rows that did not change are not written.
WITH made AS MATERIALIZED (
    SELECT * FROM unnest(
        %(kinds)s::text[], %(names)s::text[], %(waiting)s::int[], %(oldest)s::timestamptz[], %(running)s::int[],
        %(retrying)s::int[], %(later)s::int[], %(parked)s::int[]
    ) made(kind, name, waiting, oldest, running, retrying, later, parked)
),
gone AS (
    DELETE FROM jobs_backlog kept
    WHERE NOT EXISTS (SELECT FROM made WHERE made.kind = kept.kind AND made.name = kept.name)
)
INSERT INTO jobs_backlog AS kept (kind, name, waiting, oldest, running, retrying, later, parked)
SELECT kind, name, waiting, oldest, running, retrying, later, parked FROM made
ON CONFLICT (kind, name) DO UPDATE SET
    waiting = excluded.waiting, oldest = excluded.oldest, running = excluded.running, retrying = excluded.retrying,
    later = excluded.later, parked = excluded.parked
WHERE (kept.waiting, kept.oldest, kept.running, kept.retrying, kept.later, kept.parked)
    IS DISTINCT FROM (excluded.waiting, excluded.oldest, excluded.running, excluded.retrying, excluded.later, excluded.parked)
