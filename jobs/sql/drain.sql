-- lift at a rate: how many of a hold's entries may come back now, over the whole fleet. A token bucket of one second's
-- worth, refilled by the server's clock; the row's lock makes several dispatchers take turns. Whole tokens are taken at
-- once, as far as they are asked for.
INSERT INTO jobs_ratebucket AS bucket (scope, key, tokens, refilled_at)
VALUES ('hold', %(key)s, 0, clock_timestamp())
ON CONFLICT (scope, key) DO UPDATE SET
    tokens = least(%(rate)s, bucket.tokens + %(rate)s * greatest(0, extract(epoch FROM clock_timestamp() - bucket.refilled_at)::float)),
    refilled_at = clock_timestamp()
RETURNING floor(tokens)::int
