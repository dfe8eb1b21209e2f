-- Times that a datetime holds, in every table but the partitioned ones, and spans that lead to one: infinity, which SQL
-- allows for both, or the year 294000 stops the loop that reads it, whoever wrote it.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT kept.relname,
            string_agg(
                format(
                    CASE held.atttypid
                        WHEN 'interval'::regtype THEN '%1$I BETWEEN ''0'' AND ''3660 days'''
                        ELSE '%1$I > ''0001-01-02 00:00Z'' AND %1$I < ''9999-12-30 00:00Z'''
                    END,
                    held.attname
                ),
                ' AND ' ORDER BY held.attnum
            ) AS rule
        FROM pg_class kept
        JOIN pg_attribute held
            ON held.attrelid = kept.oid AND held.atttypid IN ('timestamptz'::regtype, 'interval'::regtype)
            AND NOT held.attisdropped
        WHERE kept.relnamespace = current_schema()::regnamespace AND kept.relkind = 'r' AND NOT kept.relispartition
            AND kept.relname LIKE 'jobs\_%'
        GROUP BY kept.relname
    LOOP
        EXECUTE format(
            'ALTER TABLE %I ADD CONSTRAINT %I CHECK (%s)', found.relname, found.relname || '_times', found.rule
        );
    END LOOP;
END
$$
