-- settle: one row for each attempt that did not end well, into one day's leaf. Keyed by the lease token.
INSERT INTO {attempt}
    (lease_token, job_id, due_at, attempt, process_id, started_at, finished_at, error_class, message, traceback, fingerprint)
SELECT token, job_id, due_at, attempt, process_id, started_at, clock_timestamp(), error_class, message, traceback, fingerprint
FROM unnest(
    %(tokens)s::uuid[], %(ids)s::uuid[], %(dues)s::timestamptz[], %(attempts)s::int[], %(process_ids)s::bigint[],
    %(started_ats)s::timestamptz[], %(error_classes)s::text[], %(messages)s::text[], %(tracebacks)s::text[],
    %(fingerprints)s::text[]
) a(token, job_id, due_at, attempt, process_id, started_at, error_class, message, traceback, fingerprint)
