-- settle, completed and without results, for jobs of one day: what `end` does, lean, since it is how most attempts end.
WITH
{ended}
SELECT job_id FROM kept
