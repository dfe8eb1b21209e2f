-- The audit is append-only for every role, the tables' owner included: rows do not change, and none goes before a year is
-- over. Who owns the table can still truncate or drop it, or switch the trigger off: run the web processes under a role that
-- owns nothing. (TRUNCATE is not refused here, since Django's flush after a test sends one for all tables.)
CREATE FUNCTION jobs_operatoraction_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < clock_timestamp() - interval '365 days' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit is append-only: % of jobs_operatoraction is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER jobs_operatoraction_kept BEFORE UPDATE OR DELETE ON jobs_operatoraction
FOR EACH ROW EXECUTE FUNCTION jobs_operatoraction_kept()
