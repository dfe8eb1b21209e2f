-- claim, step 2, limited queues only: before the tenants. Never waits: who finds it locked tries again in 5-20 ms.
SELECT name FROM jobs_queue
WHERE name = %(queue)s AND max_running IS NOT NULL
FOR NO KEY UPDATE SKIP LOCKED
