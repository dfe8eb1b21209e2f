-- tick: rules that are no longer in force and left slots of which nothing is told yet; several tickers skip each
-- other's. Rides on jobs_cronrevision_open, which is empty most of the time.
SELECT revision.id, revision.definition_id, revision.revision, revision.expression, revision.timezone, revision.dst,
    revision.every, revision.anchor_at, revision.run_at, revision.start_at, revision.end_at, revision.enabled,
    revision.broken, revision.cursor, revision.until
FROM jobs_cronrevision revision
WHERE NOT revision.settled
ORDER BY revision.id
LIMIT %(limit)s
FOR UPDATE SKIP LOCKED
