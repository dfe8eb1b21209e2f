"""The only code that needs a lease: claim, fetch, settle, rescue, and the processes that own the leases."""

from __future__ import annotations

from jobs.leases.claim import Claimer, ProcessExpired
from jobs.leases.fetch import fetch
from jobs.leases.gate import admit, declare
from jobs.leases.held import Targets, drain, park_held, unpark_held
from jobs.leases.looks import Line, Looks
from jobs.leases.park import park, unpark
from jobs.leases.process import end, register, renew
from jobs.leases.relay import Relayed, may_end_in_relay, may_relay, relay
from jobs.leases.rescue import Autopsy, rescue, rescue_process
from jobs.leases.settle import Ended, Fate, PutBack, Settled, fate_of, settle

__all__ = [
    "Autopsy",
    "Claimer",
    "Ended",
    "Fate",
    "Line",
    "Looks",
    "ProcessExpired",
    "PutBack",
    "Relayed",
    "Settled",
    "Targets",
    "admit",
    "declare",
    "drain",
    "end",
    "fate_of",
    "fetch",
    "may_end_in_relay",
    "may_relay",
    "park",
    "park_held",
    "register",
    "relay",
    "renew",
    "rescue",
    "rescue_process",
    "settle",
    "unpark",
    "unpark_held",
]
