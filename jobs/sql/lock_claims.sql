-- settle, step 1 of a mixed batch: lock what is still ours, in id order (the one order of all verbs). What is missing
-- was taken over by another (fenced), or settled by us before a lost reply. The LIMIT keeps the planner from turning
-- the loop round: one probe of the key per claim, in the order of the arrays, which come sorted by id.
SELECT entry.job_id, entry.cancel_requested
FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) mine(job_id, lease_token)
CROSS JOIN LATERAL (
    SELECT job_id, cancel_requested FROM jobs_queueentry
    WHERE job_id = mine.job_id AND lease_token IS NOT DISTINCT FROM mine.lease_token
    LIMIT 1
    FOR UPDATE
) entry
