-- claim, limited queues and those that drain after a hold: before the tenants. Never waits: who finds it locked tries again
-- in 5-20 ms. What was locked goes to the claim in settings of this transaction, so that lock and claim are one round trip.
SELECT set_config('punctual.queue', coalesce((
    SELECT name FROM jobs_queue
    WHERE name = %(queue)s AND (max_running IS NOT NULL OR rate IS NOT NULL)
    FOR NO KEY UPDATE SKIP LOCKED
), ''), true),
set_config('punctual.drains', coalesce((
    SELECT string_agg(id::text, ',') FROM (
        SELECT id FROM jobs_hold
        WHERE drained_at IS NULL AND until <= now() AND drain IS NOT NULL
            AND (scope = 'all' OR scope = 'queue' AND key = %(queue)s)
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
    ) locked
), ''), true)
