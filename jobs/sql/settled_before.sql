-- settle: of those that were no longer ours, the ones whose outcome bears our token: an earlier settle of ours whose
-- reply was lost. From one day's leaf by name.
SELECT outcome.job_id
FROM unnest(%(ids)s::uuid[], %(dues)s::timestamptz[], %(tokens)s::uuid[]) mine(job_id, due_at, lease_token)
CROSS JOIN LATERAL (
    SELECT job_id FROM {outcome}
    WHERE due_at = mine.due_at AND job_id = mine.job_id AND lease_token = mine.lease_token
    LIMIT 1
) outcome
