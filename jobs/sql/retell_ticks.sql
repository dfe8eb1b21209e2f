-- tick: what became of starts that waited for an earlier run. Guard: each still waits; an edit drops them under the
-- lock of their definition, which the ticker holds. Visits the days of their slots alone.
UPDATE jobs_crontick tick
SET outcome = (%(outcomes)s::text[])[array_position(%(ids)s::uuid[], tick.id)],
    reason = (%(reasons)s::text[])[array_position(%(ids)s::uuid[], tick.id)],
    job_id = (%(jobs)s::uuid[])[array_position(%(ids)s::uuid[], tick.id)]
WHERE tick.id = ANY(%(ids)s::uuid[]) AND tick.slot = ANY(%(slots)s::timestamptz[])
    AND tick.outcome IN ('waiting', 'backfilled') AND tick.job_id IS NULL
