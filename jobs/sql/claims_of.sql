-- what a process holds, for its supervisor after its death: locked in id order (not by the key's index, see `orphans`),
-- settled in the same transaction. Skips locked rows: they are orphans when its row says that it has ended.
SELECT job_id, lease_token, process_id, job_type, attempt, max_attempts, crashes, tenant_id, concurrency_key
FROM jobs_queueentry
WHERE process_id = %(process_id)s
ORDER BY uuid_send(job_id)
LIMIT %(limit)s
FOR UPDATE SKIP LOCKED
