-- The queue is small, hot and churning: room for the one narrow update of a claim, early vacuum, and no truncation
-- (it would take ACCESS EXCLUSIVE after each burst).
ALTER TABLE jobs_queueentry SET (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000,
    vacuum_truncate = off
)
