-- tick: definitions whose next slot is within reach, those that were changed (no next slot) first. Several tickers
-- skip each other's rows. Rides on jobs_crondefinition_due: what is not due is not read.
SELECT definition.id, definition.tenant_id, definition.expression, definition.timezone, definition.dst,
    definition.job_type, definition.payload, definition.queue, definition.priority, definition.max_attempts,
    definition.start_at, definition.end_at, definition.misfire, definition.misfire_grace, definition.catchup_window,
    definition.catchup_limit, definition.revision, coalesce(definition.last_slot, definition.created_at)
FROM jobs_crondefinition definition
WHERE definition.enabled AND definition.broken = ''
    AND (definition.next_slot IS NULL OR definition.next_slot <= %(until)s)
ORDER BY definition.next_slot NULLS FIRST
LIMIT %(limit)s
FOR NO KEY UPDATE SKIP LOCKED
