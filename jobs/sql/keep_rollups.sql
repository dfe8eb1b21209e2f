-- count: write the rollups of some minutes. What is there already is never made smaller: an operator's retry takes
-- outcomes away, and that a job failed stays true.
INSERT INTO jobs_rollup AS kept
    (kind, step, name, at, due, completed, failed, cancelled, errors, late, ran, ran_seconds)
SELECT kind, 60, name, at, due, completed, failed, cancelled, errors, late::int[], ran::int[], ran_seconds
FROM unnest(
    %(kinds)s::text[], %(names)s::text[], %(ats)s::timestamptz[], %(due)s::int[], %(completed)s::int[],
    %(failed)s::int[], %(cancelled)s::int[], %(errors)s::int[], %(late)s::text[], %(ran)s::text[],
    %(ran_seconds)s::float8[]
) made(kind, name, at, due, completed, failed, cancelled, errors, late, ran, ran_seconds)
ON CONFLICT (kind, step, name, at) DO UPDATE SET
    due = greatest(kept.due, excluded.due), completed = greatest(kept.completed, excluded.completed),
    failed = greatest(kept.failed, excluded.failed), cancelled = greatest(kept.cancelled, excluded.cancelled),
    errors = greatest(kept.errors, excluded.errors), late = excluded.late, ran = excluded.ran,
    ran_seconds = greatest(kept.ran_seconds, excluded.ran_seconds)
