-- fetch, after the claim's commit: what was asked for, from one day's leaf by name. By an order that only the key's index
-- has: statistics from the middle of a burst, of many pages without a row that counts, make all indexes look alike, and
-- another one reads all jobs of that instant, or the whole day, for each.
SELECT claimed.id, job.payload
FROM unnest(%(dues)s::timestamptz[], %(ids)s::uuid[]) claimed(due_at, id)
CROSS JOIN LATERAL (
    SELECT payload::text FROM {job}
    WHERE due_at = claimed.due_at AND id >= claimed.id AND id <= claimed.id
    ORDER BY id
    LIMIT 1
) job
