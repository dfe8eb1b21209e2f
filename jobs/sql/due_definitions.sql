-- tick: definitions that a ticker is to look at by now, longest due first. Several tickers skip each other's rows.
-- Rides on jobs_crondefinition_due: what is not due is not read.
SELECT definition.id, definition.tenant_id, definition.expression, definition.timezone, definition.dst,
    definition.every, coalesce(definition.anchor_at, definition.start_at, definition.created_at), definition.run_at,
    definition.job_type, definition.payload, definition.queue, definition.priority, definition.max_attempts,
    definition.start_at, definition.end_at, definition.max_runs, definition.jitter, definition.spread,
    definition.misfire, definition.misfire_grace, definition.catchup_window, definition.catchup_limit,
    definition.overlap, definition.runs, definition.revision, coalesce(definition.last_slot, definition.created_at)
FROM jobs_crondefinition definition
WHERE definition.enabled AND definition.broken = '' AND definition.look_at <= %(now)s
ORDER BY definition.look_at
LIMIT %(limit)s
FOR NO KEY UPDATE SKIP LOCKED
