-- fetch, after the claim's commit: what was asked for, from one day's leaf by name.
SELECT claimed.id, job.payload
FROM unnest(%(dues)s::timestamptz[], %(ids)s::uuid[]) claimed(due_at, id)
CROSS JOIN LATERAL (
    SELECT payload::text FROM {job} WHERE due_at = claimed.due_at AND id = claimed.id LIMIT 1
) job
