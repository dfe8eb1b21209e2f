-- server: what about the database an operator should know.
SELECT jsonb_build_object(
    'version', current_setting('server_version'),
    'size', pg_database_size(current_database()),
    'age', (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()),
    'freeze', current_setting('autovacuum_freeze_max_age')::bigint,
    'connections', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    'max_connections', current_setting('max_connections')::int,
    'replica', pg_is_in_recovery(),
    'read_only', current_setting('transaction_read_only') = 'on',
    'fsync', current_setting('fsync'),
    'synchronous_commit', current_setting('synchronous_commit'),
    'autovacuum', current_setting('autovacuum'),
    'long', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'pid', pid, 'name', application_name, 'state', state, 'seconds', extract(epoch FROM clock_timestamp() - xact_start)
        ) ORDER BY xact_start), '[]')
        FROM pg_stat_activity
        WHERE datname = current_database() AND xact_start < clock_timestamp() - interval '1 minute'
            AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    ),
    'entries', (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'jobs_queueentry'::regclass),
    'entries_dead', (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'jobs_queueentry'::regclass),
    'now', clock_timestamp()
)
