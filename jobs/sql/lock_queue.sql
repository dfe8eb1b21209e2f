-- claim, limited queues only: before the tenants. Never waits: who finds it locked tries again in 5-20 ms. What was
-- locked goes to the claim in a setting of this transaction, so that lock and claim are one round trip.
SELECT set_config('punctual.queue', coalesce((
    SELECT name FROM jobs_queue WHERE name = %(queue)s AND max_running IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED
), ''), true)
