-- admit, the net: every key for which an entry waits whose time has come and which is not full, whatever became of the
-- admission that was due to it. A loose scan of jobs_queueentry_keyline, one probe a key; the line of a full key is not
-- walked. Locks nothing.
WITH RECURSIVE hop AS (
    (
        SELECT tenant_id, concurrency_key FROM jobs_queueentry
        WHERE lease_token IS NULL AND parked = 'key'
        ORDER BY tenant_id, concurrency_key
        LIMIT 1
    )
    UNION ALL
    SELECT next.*
    FROM hop
    CROSS JOIN LATERAL (
        SELECT tenant_id, concurrency_key FROM jobs_queueentry
        WHERE lease_token IS NULL AND parked = 'key' AND (tenant_id, concurrency_key) > (hop.tenant_id, hop.concurrency_key)
        ORDER BY tenant_id, concurrency_key
        LIMIT 1
    ) next
)
SELECT tenant_id, concurrency_key
FROM hop
CROSS JOIN LATERAL (
    SELECT FROM jobs_queueentry waiting
    WHERE waiting.lease_token IS NULL AND waiting.parked = 'key' AND waiting.tenant_id = hop.tenant_id
        AND waiting.concurrency_key = hop.concurrency_key AND waiting.run_at <= %(now)s
    LIMIT 1
) due
WHERE (
    SELECT count(*) FROM jobs_queueentry held
    WHERE held.tenant_id = hop.tenant_id AND held.concurrency_key = hop.concurrency_key AND held.parked IS NULL
) < (SELECT greatest(1, max(most)) FROM jobs_keylimit)
