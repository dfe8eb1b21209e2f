-- spent: what was started is taken from the buckets of those with a rate, by one write for each of them.
, taken AS (
    SELECT ord, count(*) FROM told
    WHERE claimed AND (
        EXISTS (SELECT FROM tenants WHERE tokens IS NOT NULL) OR EXISTS (SELECT FROM room WHERE tokens IS NOT NULL)
        OR EXISTS (SELECT FROM drains)
    )
    GROUP BY ord
),
spent AS (
    INSERT INTO jobs_ratebucket AS bucket (scope, key, tokens, refilled_at)
    SELECT owner.scope, owner.key, greatest(0, owner.tokens - owner.count), moment.read_at
    FROM (
        SELECT 'tenant' AS scope, tenants.tenant_id::text AS key, tenants.tokens, taken.count
        FROM tenants JOIN taken USING (ord)
        UNION ALL
        SELECT 'queue', %(queue)s, room.tokens, (SELECT sum(count) FROM taken) FROM room
        UNION ALL
        SELECT 'hold', drains.id::text, drains.tokens, (SELECT sum(count) FROM taken) FROM drains
    ) owner, moment
    WHERE owner.tokens IS NOT NULL AND owner.count > 0
    ON CONFLICT (scope, key) DO UPDATE SET tokens = excluded.tokens, refilled_at = excluded.refilled_at
)
