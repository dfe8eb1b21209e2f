-- rules: what may start now, of these tenants and of this queue. One text for all who need to know: the claim, who asks
-- for the tenants that were passed over (free), and who asks why a job waits (why).
-- Of a limited owner only what was locked in this transaction is judged, as the counts must be younger than the lock; who
-- takes nothing asks with `peek`, as if he had the locks. Usage is counted from live leases; rates are buckets that time
-- refills. A NULL limits nothing, and least() passes over it. Who has neither limit, rate nor hold pays for the reading
-- of his row alone: the other probes are behind one-time filters.
moment AS MATERIALIZED (
    SELECT clock_timestamp() AS read_at
),
hold AS MATERIALIZED (
    SELECT id, scope, key, coalesce(until <= now(), false) AS ended, drain
    FROM jobs_hold
    WHERE drained_at IS NULL AND since <= now() AND (until IS NULL OR until > now() OR drain IS NOT NULL)
        AND (scope IN ('all', 'tenant') OR scope = 'queue' AND key = %(queue)s)
),
locked AS MATERIALIZED (
    SELECT unnest(string_to_array(current_setting('punctual.tenants', true), ',')::bigint[]) AS id
),
gates AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM jobs_tenantqueuelimit WHERE queue = %(queue)s) AS pairs,
        EXISTS (SELECT FROM hold WHERE scope = 'tenant' AND ended) AS drains
),
tenants AS MATERIALIZED (
    SELECT share.tenant_id, share.most, share.ord, tenant.slug, tenant.weight, tenant.noisy_exempt, rule.held, rule.limited,
        tenant.max_running, running.count AS running, pair.max_running AS max_here, running.here, rated.rate, saved.tokens,
        CASE WHEN counted.so THEN running.oldest ELSE 0 END AS oldest,
        CASE
            WHEN rule.stopped THEN 0
            WHEN NOT rule.limited THEN share.most
            WHEN NOT rule.held THEN 0
            ELSE greatest(0, least(slots.free, floor(saved.tokens)::bigint))
        END AS allowed,
        CASE
            WHEN rule.stopped OR rated.rate = 0 THEN 'Infinity'
            WHEN saved.tokens < slots.free THEN (floor(saved.tokens) + 1 - saved.tokens) / rated.rate
        END AS wait,
        rule.stopped
    FROM unnest(
        %(tenants)s::bigint[], %(shares)s::bigint[], %(oldest)s::bigint[]
    ) WITH ORDINALITY share(tenant_id, most, oldest, ord)
    LEFT JOIN LATERAL (
        SELECT slug, weight, burst, noisy_exempt,
            CASE WHEN temporary_until > now() THEN temporary_max_running ELSE max_running END AS max_running,
            rate::float8 / CASE rate_per WHEN 'second' THEN 1 WHEN 'minute' THEN 60 ELSE 3600 END AS rate
        FROM jobs_tenant WHERE id = share.tenant_id LIMIT 1
    ) tenant ON true
    LEFT JOIN LATERAL (
        SELECT max_running FROM jobs_tenantqueuelimit
        WHERE (SELECT pairs FROM gates) AND queue = %(queue)s AND tenant_id = share.tenant_id
        LIMIT 1
    ) pair ON true
    LEFT JOIN LATERAL (
        SELECT min(drain)::float8 AS drain FROM jobs_hold
        WHERE (SELECT drains FROM gates) AND scope = 'tenant' AND key = tenant.slug
            AND drained_at IS NULL AND until <= now()
    ) ended ON true
    CROSS JOIN LATERAL (
        SELECT least(tenant.rate, ended.drain) AS rate,
            CASE WHEN ended.drain < tenant.rate OR tenant.burst IS NULL THEN greatest(1, ceil(least(tenant.rate, ended.drain)))
                ELSE tenant.burst
            END AS burst
    ) rated
    CROSS JOIN LATERAL (
        SELECT tenant.max_running IS NOT NULL OR pair.max_running IS NOT NULL OR rated.rate IS NOT NULL AS limited,
            tenant.slug IN (SELECT key FROM hold WHERE scope = 'tenant' AND NOT ended) IS TRUE AS stopped,
            %(peek)s OR share.tenant_id IN (SELECT id FROM locked) AS held
        OFFSET 0
    ) rule
    CROSS JOIN LATERAL (
        SELECT (tenant.max_running IS NOT NULL OR pair.max_running IS NOT NULL) AND rule.held AS so
    ) counted
    LEFT JOIN LATERAL (
        SELECT count(*), count(*) FILTER (WHERE queue = %(queue)s) AS here, min(claim_no) AS oldest FROM (
            SELECT entry.claim_no, entry.queue FROM jobs_queueentry entry
            WHERE counted.so AND entry.tenant_id = share.tenant_id AND entry.lease_token IS NOT NULL
                AND entry.claim_no >= share.oldest
            ORDER BY entry.claim_no
            LIMIT CASE WHEN pair.max_running IS NULL THEN tenant.max_running END
        ) leased
    ) running ON true
    LEFT JOIN LATERAL (
        SELECT CASE
            WHEN rated.rate IS NULL THEN NULL
            WHEN rated.rate = 0 THEN 0
            ELSE least(rated.burst, coalesce((
                SELECT tokens + rated.rate * greatest(0, extract(epoch FROM moment.read_at - refilled_at)) FROM jobs_ratebucket, moment
                WHERE scope = 'tenant' AND key = share.tenant_id::text
            ), rated.burst)) + 1e-6
        END AS tokens
    ) saved ON true
    CROSS JOIN LATERAL (
        SELECT least(share.most, tenant.max_running - running.count, pair.max_running - running.here) AS free
    ) slots
),
drains AS MATERIALIZED (
    SELECT hold.id, hold.drain, saved.tokens, lock.held
    FROM hold
    CROSS JOIN LATERAL (
        SELECT least(hold.drain, coalesce((
            SELECT tokens + hold.drain * greatest(0, extract(epoch FROM moment.read_at - refilled_at)) FROM jobs_ratebucket, moment
            WHERE scope = 'hold' AND key = hold.id::text
        ), 1)) + 1e-6 AS tokens
    ) saved
    CROSS JOIN LATERAL (
        SELECT %(peek)s OR coalesce(
            hold.id = ANY(string_to_array(current_setting('punctual.drains', true), ',')::bigint[]), false
        ) AS held
    ) lock
    WHERE hold.ended AND hold.scope <> 'tenant'
),
room AS MATERIALIZED (
    SELECT queue.max_running, queue.noisy_share, running.count AS running, rated.rate, saved.tokens, limited.so AS limited,
        rule.stopped, drain.ing AS draining,
        CASE WHEN counted.so THEN running.oldest ELSE 0 END AS oldest,
        CASE
            WHEN NOT %(peek)s AND NOT EXISTS (
                SELECT FROM jobs_process
                WHERE id = %(process_id)s AND lease_expires_at > clock_timestamp()
            ) THEN -1
            WHEN rule.stopped THEN 0
            WHEN limited.so AND NOT lock.held OR drain.unlocked THEN 0
            ELSE greatest(0, least(slots.free, floor(saved.tokens)::bigint, drain.tokens))
        END AS size,
        CASE
            WHEN rule.stopped OR rated.rate = 0 THEN 'Infinity'
            WHEN limited.so AND NOT lock.held OR slots.free <= 0 THEN NULL
            ELSE greatest(CASE WHEN saved.tokens < 1 THEN (1 - saved.tokens) / rated.rate END, drain.wait)
        END AS wait
    FROM (
        SELECT %(peek)s OR coalesce(current_setting('punctual.queue', true) = %(queue)s, false) AS held
    ) lock
    CROSS JOIN (SELECT EXISTS (SELECT FROM hold WHERE scope <> 'tenant' AND NOT ended) AS stopped OFFSET 0) rule
    CROSS JOIN (
        SELECT count(*) > 0 AS ing, coalesce(bool_or(NOT held), false) AS unlocked, min(floor(tokens)::bigint) AS tokens,
            max(CASE WHEN tokens < 1 THEN (1 - tokens) / drain END) AS wait
        FROM drains
    ) drain
    LEFT JOIN LATERAL (
        SELECT max_running, noisy_share, burst,
            rate::float8 / CASE rate_per WHEN 'second' THEN 1 WHEN 'minute' THEN 60 ELSE 3600 END AS rate
        FROM jobs_queue WHERE name = %(queue)s
    ) queue ON true
    CROSS JOIN LATERAL (
        SELECT queue.rate, coalesce(queue.burst, greatest(1, ceil(queue.rate))) AS burst
    ) rated
    CROSS JOIN LATERAL (SELECT queue.max_running IS NOT NULL OR queue.rate IS NOT NULL AS so) limited
    CROSS JOIN LATERAL (SELECT queue.max_running IS NOT NULL AND lock.held AS so) counted
    LEFT JOIN LATERAL (
        SELECT count(*), min(claim_no) AS oldest FROM (
            SELECT entry.claim_no FROM jobs_queueentry entry
            WHERE counted.so AND entry.queue = %(queue)s AND entry.process_id IS NOT NULL
                AND entry.claim_no >= %(queue_oldest)s
            ORDER BY entry.claim_no
            LIMIT queue.max_running
        ) leased
    ) running ON true
    LEFT JOIN LATERAL (
        SELECT CASE
            WHEN rated.rate IS NULL THEN NULL
            WHEN rated.rate = 0 THEN 0
            ELSE least(rated.burst, coalesce((
                SELECT tokens + rated.rate * greatest(0, extract(epoch FROM moment.read_at - refilled_at)) FROM jobs_ratebucket, moment
                WHERE scope = 'queue' AND key = %(queue)s
            ), rated.burst)) + 1e-6
        END AS tokens
    ) saved ON true
    CROSS JOIN LATERAL (SELECT least(%(size)s, queue.max_running - running.count) AS free) slots
),
