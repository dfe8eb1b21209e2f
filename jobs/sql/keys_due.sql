-- admit: keys for which an entry waits whose time has come since the last look, and when the next one's will. Rides on
-- jobs_queueentry_keydue; each entry is read about once. A row without a tenant says only when.
(
    SELECT DISTINCT tenant_id, concurrency_key, NULL::timestamptz FROM jobs_queueentry
    WHERE process_id IS NULL AND parked = 'key' AND run_at > %(since)s AND run_at <= %(now)s
)
UNION ALL
(
    SELECT NULL, NULL, run_at FROM jobs_queueentry
    WHERE process_id IS NULL AND parked = 'key' AND run_at > %(now)s
    ORDER BY run_at
    LIMIT 1
)
