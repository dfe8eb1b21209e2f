-- settle, into a final state, for jobs of one day: the entry goes, the outcome says how it ended, the key is free.
-- Guard: the lease token, judged again under the row's lock. The arrays come sorted by id, and the LIMIT keeps the
-- planner from turning the loop round, so the locks are taken in id order by one probe of the key each. A token
-- compared by "=" would imply that it is not null, and a partial index of leased rows be walked whole instead.
-- A cancel flag set meanwhile does not matter here: completed stays completed; of other results the caller has decided
-- under lock_claims' locks.
WITH mine AS MATERIALIZED (
    SELECT entry.*, result.state, result.started_at, result.result, result.error, result.fingerprint,
        entry.crashed + result.crashes::int AS crashes
    FROM unnest(
        %(ids)s::uuid[], %(tokens)s::uuid[], %(states)s::text[], %(started_ats)s::timestamptz[], %(results)s::jsonb[],
        %(errors)s::text[], %(fingerprints)s::text[], %(crashes)s::bigint[]
    ) result(job_id, lease_token, state, started_at, result, error, fingerprint, crashes)
    CROSS JOIN LATERAL (
        SELECT job_id, due_at, attempt, max_attempts, crashes AS crashed, lease_token, process_id, action_id
        FROM jobs_queueentry
        WHERE job_id = result.job_id AND lease_token IS NOT DISTINCT FROM result.lease_token
        LIMIT 1
        FOR UPDATE
    ) entry
),
gone AS (
    DELETE FROM jobs_queueentry WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine))
),
freed AS (
    DELETE FROM jobs_uniquekey WHERE job_id = ANY(ARRAY(SELECT job_id FROM mine)) AND expires_at IS NULL
)
INSERT INTO {outcome}
    (job_id, due_at, state, attempt, max_attempts, crashes, lease_token, started_at, finished_at, process_id, error,
     error_fingerprint, action_id, result)
SELECT job_id, due_at, state, attempt, max_attempts, crashes, lease_token, started_at, clock_timestamp(), process_id,
    error, fingerprint, action_id, result
FROM mine
RETURNING job_id
