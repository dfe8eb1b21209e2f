-- tick: when the next definition is to be looked at. What is due by now and was left is locked by another session: it
-- does not count. Rides on jobs_crondefinition_due, by its order: min() may read it whole.
SELECT (
    SELECT look_at
    FROM jobs_crondefinition
    WHERE enabled AND broken = '' AND look_at > %(now)s
    ORDER BY look_at
    LIMIT 1
)
