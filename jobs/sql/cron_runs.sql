-- tick: the runs and waiting starts of these definitions, whose rows are locked by due_definitions; oldest first.
SELECT definition_id, tick_id, slot, revision, job_id, asked
FROM jobs_cronrun
WHERE definition_id = ANY(%(ids)s::bigint[])
ORDER BY definition_id, slot, tick_id
