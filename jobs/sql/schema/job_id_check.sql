-- A job's id carries its due time: without this, looking up an id would look into the wrong day. Refuses infinity too.
ALTER TABLE jobs_job ADD CONSTRAINT jobs_job_id_due_at CHECK (
    due_at = 'epoch'::timestamptz
        + (('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint) * interval '1 millisecond'
)
