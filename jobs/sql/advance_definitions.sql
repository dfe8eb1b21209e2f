-- tick: move the cursors, in the transaction that wrote the ticks and jobs. The rows are locked by due_definitions. One
-- probe of the key a row, by ctid: joined by key, a plan made while the statistics say "empty" reads them all.
WITH moved AS MATERIALIZED (
    SELECT here.place, moved.*
    FROM unnest(
        %(ids)s::bigint[], %(nexts)s::timestamptz[], %(lasts)s::timestamptz[], %(looks)s::timestamptz[], %(runs)s::int[],
        %(brokens)s::text[]
    ) moved(id, next_slot, last_slot, look_at, runs, broken)
    CROSS JOIN LATERAL (SELECT ctid AS place FROM jobs_crondefinition WHERE id = moved.id LIMIT 1) here
)
UPDATE jobs_crondefinition definition
SET next_slot = moved.next_slot, last_slot = greatest(definition.last_slot, moved.last_slot), look_at = moved.look_at,
    runs = definition.runs + moved.runs, tz_version = %(tz_version)s, broken = moved.broken
FROM moved
WHERE definition.ctid = moved.place
