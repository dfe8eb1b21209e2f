-- claim, step 2, limited tenants only: a statement of its own, so that the count in the next one has a snapshot that
-- is younger than the lock (in one statement a limit of 1 was seen with 2 running). In id order; never waits.
SELECT id FROM jobs_tenant
WHERE id = ANY(%(limited)s::bigint[]) AND max_running IS NOT NULL
ORDER BY id
FOR NO KEY UPDATE SKIP LOCKED
