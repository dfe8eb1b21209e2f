-- tick: move the cursors, in the transaction that wrote the ticks and jobs. The rows are locked by due_definitions.
UPDATE jobs_crondefinition definition
SET next_slot = moved.next_slot, last_slot = greatest(definition.last_slot, moved.last_slot), look_at = moved.look_at,
    runs = definition.runs + moved.runs, tz_version = %(tz_version)s, broken = moved.broken
FROM unnest(
    %(ids)s::bigint[], %(nexts)s::timestamptz[], %(lasts)s::timestamptz[], %(looks)s::timestamptz[], %(runs)s::int[],
    %(brokens)s::text[]
) moved(id, next_slot, last_slot, look_at, runs, broken)
WHERE definition.id = moved.id
