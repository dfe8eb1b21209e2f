-- tick: what became of starts that waited for an earlier run. Guard: each still waits; an edit drops them under the
-- lock of their definition, which the ticker holds. From the leaves of their slots alone.
UPDATE jobs_crontick tick
SET outcome = told.outcome, reason = told.reason, job_id = told.job_id
FROM unnest(%(ids)s::uuid[], %(outcomes)s::text[], %(reasons)s::text[], %(jobs)s::uuid[])
    told(id, outcome, reason, job_id)
WHERE tick.id = told.id AND tick.slot = ANY(%(slots)s::timestamptz[])
    AND tick.outcome IN ('waiting', 'backfilled') AND tick.job_id IS NULL
