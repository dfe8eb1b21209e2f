-- tables: what the statistics know of the tables that are no days.
SELECT relname, n_live_tup, n_dead_tup, seq_scan, coalesce(idx_scan, 0), last_autovacuum, last_autoanalyze,
    pg_total_relation_size(relid)
FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND starts_with(relname, 'jobs_') AND relname !~ '__\d'
ORDER BY relname
LIMIT 100
