-- Whoever changes a rule column of a cron definition, by whatever path, gets a new revision and has the next slot
-- computed anew: ticks and job ids of the old rule never stand in the way of the new one's. What the old rule wrote
-- ahead is withdrawn in the same transaction: its jobs end cancelled, its ticks say replaced.
CREATE FUNCTION jobs_crondefinition_withdraw(withdrawn bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ahead uuid[];
BEGIN
    WITH replaced AS (
        UPDATE jobs_crontick SET outcome = 'replaced'
        WHERE definition_id = withdrawn AND slot > now() AND slot < now() + interval '2 days'
            AND outcome IN ('fired', 'late')
        RETURNING job_id
    )
    SELECT array_agg(job_id ORDER BY job_id) INTO ahead FROM replaced;
    IF ahead IS NULL THEN
        RETURN;
    END IF;
    -- One statement per place, each with a snapshot of its own: a timer that is being dispatched is an entry next.
    -- Locked in id order first, as by every verb.
    PERFORM FROM jobs_timer
    WHERE job_id = ANY(ahead) AND due_at > now() AND due_at < now() + interval '3 days'
    ORDER BY job_id
    FOR UPDATE;
    WITH gone AS (
        DELETE FROM jobs_timer
        WHERE job_id = ANY(ahead) AND due_at > now() AND due_at < now() + interval '3 days'
        RETURNING job_id, due_at, max_attempts
    )
    INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at)
    SELECT job_id, due_at, 'cancelled', 0, max_attempts, 0, clock_timestamp() FROM gone;
    PERFORM FROM jobs_queueentry WHERE job_id = ANY(ahead) ORDER BY job_id FOR UPDATE;
    WITH gone AS (
        DELETE FROM jobs_queueentry WHERE job_id = ANY(ahead) AND lease_token IS NULL
        RETURNING job_id, due_at, attempt, max_attempts, crashes
    )
    INSERT INTO jobs_outcome (job_id, due_at, state, attempt, max_attempts, crashes, finished_at)
    SELECT job_id, due_at, 'cancelled', attempt, max_attempts, crashes, clock_timestamp() FROM gone;
END $$;

CREATE FUNCTION jobs_crondefinition_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM jobs_crondefinition_withdraw(OLD.id);
        RETURN OLD;
    END IF;
    IF (NEW.expression, NEW.timezone, NEW.dst, NEW.enabled, NEW.start_at, NEW.end_at, NEW.job_type, NEW.payload,
        NEW.tenant_id, NEW.queue, NEW.priority, NEW.max_attempts)
        IS DISTINCT FROM
       (OLD.expression, OLD.timezone, OLD.dst, OLD.enabled, OLD.start_at, OLD.end_at, OLD.job_type, OLD.payload,
        OLD.tenant_id, OLD.queue, OLD.priority, OLD.max_attempts)
    THEN
        PERFORM jobs_crondefinition_withdraw(OLD.id);
        NEW.revision := OLD.revision + 1;
        NEW.next_slot := NULL;
        -- time up to now belongs to the old rule: an edit, a disabling or an enabling fires nothing by itself. The
        -- cursor may go back here, from what was written ahead: the new revision keeps those slots apart.
        NEW.last_slot := clock_timestamp();
        NEW.broken := '';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER jobs_crondefinition_changed BEFORE UPDATE OR DELETE ON jobs_crondefinition
FOR EACH ROW EXECUTE FUNCTION jobs_crondefinition_changed()
