-- Whoever changes a rule column of a cron definition, by whatever path, gets a new revision: ticks and job ids of the old
-- rule never stand in the way of the new one's. In the same transaction the old rule is kept as a jobs_cronrevision, what
-- it wrote ahead of `moment` is withdrawn (its jobs end cancelled, its ticks say replaced), and starts that wait for an
-- earlier run are dropped. `withdrawn`: how many runs that were, counted and never begun. `kept`: the last slot ahead whose job runs already,
-- claimed a moment early; the new rule counts from there.
CREATE FUNCTION jobs_crondefinition_withdraw(
    definition bigint, moment timestamptz, OUT withdrawn int, OUT kept timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    start record;
    ahead uuid[];
    gone uuid[];
BEGIN
    withdrawn := 0;
    FOR start IN
        DELETE FROM jobs_cronrun WHERE definition_id = definition AND job_id IS NULL AND NOT asked RETURNING tick_id, slot
    LOOP
        UPDATE jobs_crontick SET outcome = 'skipped', reason = 'the definition was changed while it waited'
        WHERE id = start.tick_id AND slot = start.slot;
        withdrawn := withdrawn + 1;
    END LOOP;
    SELECT array_agg(job_id ORDER BY job_id) INTO ahead FROM jobs_crontick
    WHERE definition_id = definition AND slot > moment AND slot < moment + interval '2 days'
        AND outcome IN ('fired', 'late');
    IF ahead IS NULL THEN
        RETURN;
    END IF;
    -- One statement per place, each with a snapshot of its own: a timer that is being dispatched is an entry next.
    -- Locked in id order first, as by every verb.
    PERFORM FROM jobs_timer
    WHERE job_id = ANY(ahead) AND due_at > moment AND due_at < moment + interval '4 days'
    ORDER BY job_id
    FOR UPDATE;
    WITH ended AS (
        DELETE FROM jobs_timer
        WHERE job_id = ANY(ahead) AND due_at > moment AND due_at < moment + interval '4 days'
        RETURNING job_id, due_at, max_attempts
    ),
    told AS (
        INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at)
        SELECT job_id, due_at, 'cancelled', 0, max_attempts, 0, clock_timestamp() FROM ended
    )
    SELECT coalesce(array_agg(job_id), '{}') INTO gone FROM ended;
    PERFORM FROM jobs_queueentry WHERE job_id = ANY(ahead) ORDER BY job_id FOR UPDATE;
    WITH ended AS (
        DELETE FROM jobs_queueentry WHERE job_id = ANY(ahead) AND lease_token IS NULL
        RETURNING job_id, due_at, attempt, max_attempts, crashes
    ),
    told AS (
        INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at)
        SELECT job_id, due_at, 'cancelled', attempt, max_attempts, crashes, clock_timestamp() FROM ended
    )
    SELECT gone || coalesce(array_agg(job_id), '{}') INTO gone FROM ended;
    UPDATE jobs_crontick SET outcome = 'replaced'
    WHERE definition_id = definition AND slot > moment AND slot < moment + interval '2 days' AND job_id = ANY(gone);
    withdrawn := withdrawn + cardinality(gone);
    SELECT max(slot) INTO kept FROM jobs_crontick
    WHERE definition_id = definition AND slot > moment AND slot < moment + interval '2 days'
        AND outcome IN ('fired', 'late');
END $$;

CREATE FUNCTION jobs_crondefinition_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    reached timestamptz := coalesce(OLD.last_slot, OLD.created_at);
    -- its runs are used up or its end has come: it left nothing untold
    spent boolean := OLD.broken = '' AND (OLD.look_at IS NULL OR coalesce(OLD.runs >= OLD.max_runs, false));
    before record;
BEGIN
    IF TG_OP = 'UPDATE' AND
       (NEW.expression, NEW.timezone, NEW.dst, NEW.every, NEW.anchor_at, NEW.run_at, NEW.enabled, NEW.start_at,
        NEW.end_at, NEW.max_runs, NEW.jitter, NEW.spread, NEW.overlap, NEW.job_type, NEW.payload, NEW.tenant_id,
        NEW.queue, NEW.priority, NEW.max_attempts, NEW.revision)
        IS NOT DISTINCT FROM
       (OLD.expression, OLD.timezone, OLD.dst, OLD.every, OLD.anchor_at, OLD.run_at, OLD.enabled, OLD.start_at,
        OLD.end_at, OLD.max_runs, OLD.jitter, OLD.spread, OLD.overlap, OLD.job_type, OLD.payload, OLD.tenant_id,
        OLD.queue, OLD.priority, OLD.max_attempts, OLD.revision)
       -- of one that is broken, these may be what was wrong with it
       AND (OLD.broken = '' OR (NEW.misfire, NEW.misfire_grace, NEW.catchup_window, NEW.catchup_limit)
        IS NOT DISTINCT FROM (OLD.misfire, OLD.misfire_grace, OLD.catchup_window, OLD.catchup_limit))
    THEN
        RETURN NEW;
    END IF;
    SELECT * INTO before FROM jobs_crondefinition_withdraw(OLD.id, moment);
    -- time up to now belongs to the old rule: an edit, a disabling or an enabling fires nothing by itself. The cursor
    -- may go back here, from what was written ahead: the new revision keeps those slots apart.
    moment := greatest(moment, before.kept);
    INSERT INTO jobs_cronrevision
        (definition_id, revision, expression, timezone, dst, every, anchor_at, run_at, start_at, end_at, enabled, broken,
         since, cursor, until, settled)
    VALUES
        (OLD.id, OLD.revision, OLD.expression, OLD.timezone, OLD.dst, OLD.every,
         coalesce(OLD.anchor_at, OLD.start_at, OLD.created_at), OLD.run_at, OLD.start_at, OLD.end_at, OLD.enabled,
         OLD.broken, OLD.revised_at, reached, CASE WHEN spent THEN reached ELSE moment END, spent OR reached >= moment);
    IF TG_OP = 'DELETE' THEN
        DELETE FROM jobs_cronrun WHERE definition_id = OLD.id;
        RETURN OLD;
    END IF;
    NEW.revision := OLD.revision + 1;
    NEW.revised_at := moment;
    NEW.last_slot := moment;
    NEW.next_slot := NULL;
    NEW.look_at := 'epoch';
    NEW.runs := OLD.runs - before.withdrawn;
    NEW.broken := '';
    RETURN NEW;
END $$;

CREATE TRIGGER jobs_crondefinition_changed BEFORE UPDATE OR DELETE ON jobs_crondefinition
FOR EACH ROW EXECUTE FUNCTION jobs_crondefinition_changed()
