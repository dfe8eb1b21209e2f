-- tick: move the cursors, in the transaction that wrote the ticks and jobs. The rows are locked by due_definitions.
UPDATE jobs_crondefinition definition
SET next_slot = moved.next_slot, last_slot = greatest(definition.last_slot, moved.last_slot), broken = moved.broken
FROM unnest(%(ids)s::bigint[], %(nexts)s::timestamptz[], %(lasts)s::timestamptz[], %(brokens)s::text[])
    moved(id, next_slot, last_slot, broken)
WHERE definition.id = moved.id
