-- settle, back to waiting (retry, snooze, release): the lease is given up, the entry waits in its queue.
-- Guard: the lease token, under lock_claims' locks. `back`: an attempt that is not counted. `run_at` is at least the
-- time of the return, so that it never lies behind what a claimer has already passed. Who waits does not keep his place under
-- a concurrency key from others; who was only released does.
WITH mine AS MATERIALIZED (
    SELECT entry.ctid AS place, result.*
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::uuid[], %(waits)s::text[], %(wait_times)s::interval[], %(backs)s::int[],
        %(crashes)s::int[]
    ) result(job_id, lease_token, waits, wait, back, crashes)
    CROSS JOIN LATERAL (
        SELECT ctid FROM jobs_queueentry
        WHERE job_id = result.job_id AND lease_token IS NOT DISTINCT FROM result.lease_token
        LIMIT 1
    ) entry
)
UPDATE jobs_queueentry entry
SET lease_token = NULL, process_id = NULL, claimed_at = NULL,
    attempt = entry.attempt - mine.back,
    crashes = entry.crashes + mine.crashes,
    waits = coalesce(mine.waits, entry.waits),
    parked = CASE WHEN mine.wait IS NOT NULL AND entry.concurrency_key IS NOT NULL THEN 'key' END,
    run_at = CASE
        WHEN mine.wait IS NULL THEN greatest(entry.run_at, clock_timestamp())
        ELSE clock_timestamp() + mine.wait
    END
FROM mine
WHERE entry.ctid = mine.place
RETURNING entry.job_id
