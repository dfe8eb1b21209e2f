-- failures: the latest of a window, by fingerprint (without one, by text): how many, since when, when in the window, and
-- the latest job of each, what people have said of it, and the deploys of the window. Rides on the failed outcomes' own
-- index; stops at the cap.
WITH latest AS (
    SELECT job_id, due_at, finished_at, attempt, error, error_fingerprint AS fingerprint
    FROM jobs_outcome
    WHERE state = 'failed' AND finished_at >= %(since)s AND finished_at < %(until)s
        AND due_at >= %(start)s AND due_at < %(end)s
    ORDER BY finished_at DESC LIMIT %(cap)s
),
places AS (
    SELECT fingerprint, CASE WHEN fingerprint IS NULL THEN error END AS text,
        width_bucket(extract(epoch FROM finished_at), extract(epoch FROM %(since)s::timestamptz),
            extract(epoch FROM %(until)s::timestamptz), %(buckets)s) AS bucket,
        count(*) AS n, min(finished_at) AS first, max(finished_at) AS last,
        (array_agg(job_id ORDER BY finished_at DESC))[1:3] AS jobs
    FROM latest GROUP BY 1, 2, 3
),
groups AS (
    SELECT fingerprint, text, sum(n)::bigint AS n, min(first) AS first, max(last) AS last,
        jsonb_object_agg(bucket, n) AS buckets, (array_agg(jobs[1] ORDER BY last DESC))[1] AS job_id
    FROM places GROUP BY 1, 2 ORDER BY n DESC, last DESC LIMIT %(groups)s
)
SELECT groups.fingerprint, groups.n, groups.first, groups.last, groups.buckets, groups.job_id,
    latest.due_at, latest.error, latest.attempt, job.job_type, tenant.slug, whole.n, whole.first,
    triage.state, triage.until, triage.at, triage.owner, triage.note, triage.by,
    (
        SELECT jsonb_agg(jsonb_build_array(at, target ->> 'deploy') ORDER BY id) FROM (
            SELECT id, at, target FROM jobs_operatoraction
            WHERE verb = 'deploy' AND result = 'done' AND at >= %(since)s AND at < %(until)s
            ORDER BY id DESC LIMIT 20
        ) deploys
    )
FROM groups
CROSS JOIN (SELECT count(*) AS n, min(finished_at) AS first FROM latest) whole
JOIN latest ON latest.job_id = groups.job_id
LEFT JOIN LATERAL (
    SELECT job_type, tenant_id FROM jobs_job each
    WHERE each.due_at >= %(start)s AND each.due_at < %(end)s
        AND each.due_at = latest.due_at AND each.id = latest.job_id
    LIMIT 1
) job ON true
LEFT JOIN jobs_tenant tenant ON tenant.id = job.tenant_id
LEFT JOIN jobs_triage triage ON triage.fingerprint = groups.fingerprint
ORDER BY groups.n DESC, groups.last DESC
