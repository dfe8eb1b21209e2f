-- ended: jobs that have completed without a result, for jobs of one day: the entry goes, the key is free.
-- Guard: the lease token, judged again under the row's lock; locked in id order by one probe of the key each, as in `end`.
mine AS MATERIALIZED (
    SELECT entry.*, result.started_at
    FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(started_ats)s::timestamptz[])
        result(job_id, lease_token, started_at)
    CROSS JOIN LATERAL (
        SELECT job_id, due_at, attempt, max_attempts, crashes, lease_token, process_id, action_id
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
),
kept AS (
    INSERT INTO {outcome}
        (job_id, due_at, state, attempt, max_attempts, crashes, lease_token, started_at, finished_at, process_id, action_id)
    SELECT job_id, due_at, 'completed', attempt, max_attempts, crashes, lease_token, started_at, clock_timestamp(),
        process_id, action_id
    FROM mine
    RETURNING job_id
)
