-- tick: the ledger first. A slot that was written before gives no row, and then nothing else is written for it.
INSERT INTO jobs_crontick (id, slot, definition_id, revision, outcome, reason, last_slot, slots, job_id)
SELECT * FROM unnest(
    %(ids)s::uuid[], %(slots)s::timestamptz[], %(definitions)s::bigint[], %(revisions)s::int[], %(outcomes)s::text[],
    %(reasons)s::text[], %(lasts)s::timestamptz[], %(counts)s::int[], %(jobs)s::uuid[]
)
ON CONFLICT DO NOTHING
RETURNING id
