"""What those guards of concurrency keys prevent that only a second session shows."""

from __future__ import annotations

from jobs.leases import gate
from tests.concurrency import test_concurrency_keys as keys
from tests.mutating import Mutants
from tests.racing import Connection


def who_waited_for_another_counts_what_it_gave(connection: Connection) -> None:
    keys.test_who_waits_for_another_admission_counts_what_it_gave(connection, "repeatable read")


def the_order_of_the_locks_is_that_of_all(connection: Connection) -> None:
    keys.test_admissions_of_two_keys_in_opposite_order_do_not_deadlock(connection)


MUTANTS: Mutants = {
    who_waited_for_another_counts_what_it_gave: [
        (gate._admit, 'connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")', "pass"),
        (gate._admit, 'load("lock_keys")', 'load("lock_keys").replace("pg_advisory_xact_lock", "abs")'),
    ],
    the_order_of_the_locks_is_that_of_all: [(gate.admit, "sorted(set(keys))", "list(keys)")],
}
