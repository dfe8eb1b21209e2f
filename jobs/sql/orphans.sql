-- rescue: entries whose process is missing or expired, by the server's clock. Locked here and settled in the same
-- transaction, so a settle that got there first or a lease that was renewed is never overwritten. Skips locked rows.
-- Most often there is none. In id order, but not by the key's index: a LIMIT would tempt the planner to walk all that
-- waits along it, instead of what is leased.
SELECT entry.job_id, entry.lease_token, entry.process_id, entry.job_type, entry.attempt,
    entry.max_attempts, entry.crashes, entry.tenant_id, entry.concurrency_key
FROM jobs_queueentry entry
LEFT JOIN jobs_process process ON process.id = entry.process_id
WHERE entry.process_id IS NOT NULL
    AND (process.id IS NULL OR process.lease_expires_at <= clock_timestamp())
ORDER BY uuid_send(entry.job_id)
LIMIT %(limit)s
FOR UPDATE OF entry SKIP LOCKED
