-- free: of the tenants that were passed over, how long each has still to wait; NULL: it may run again now. One statement
-- for all, by the rules of the claim, counting from the same marks. Locks nothing.
WITH
{rules}
waiting AS (
    SELECT tenant_id, CASE WHEN allowed = 0 THEN coalesce(wait, 0) END FROM tenants
)
SELECT * FROM waiting
