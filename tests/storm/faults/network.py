"""The way between one process, or all, and the database."""

from __future__ import annotations

from random import Random

from tests.storm.cluster import Cluster
from tests.storm.environment import LEASE
from tests.storm.fleet import Member
from tests.storm.proxy import Link


def stall(cluster: Cluster, chance: Random) -> frozenset[int] | None:
    """Nothing is carried for a while, for one or for all."""
    if chance.random() < 0.5:
        return _stall(cluster, "", None, chance.uniform(1.0, LEASE / 2))
    member = _one(cluster, chance)
    return _stall(cluster, member.name, _bodies(member), chance.uniform(1.0, LEASE / 2))


def stall_long(cluster: Cluster, chance: Random) -> frozenset[int] | None:
    member = _one(cluster, chance)
    return _stall(cluster, member.name, _bodies(member), LEASE * chance.uniform(1.3, 1.8))


def drop(cluster: Cluster, chance: Random) -> None:
    for _ in range(chance.randrange(1, 5)):
        cluster.proxy.tell("", Link.drop)
        cluster.wait(chance.uniform(0.0, 0.5))


def half_close(cluster: Cluster, chance: Random) -> None:
    for _ in range(chance.randrange(1, 3)):
        towards_client = chance.random() < 0.5
        cluster.proxy.tell("", lambda link, side=towards_client: link.half_close(towards_client=side))  # type: ignore[misc]
        cluster.wait(chance.uniform(0.5, 1.0))


def swallow(cluster: Cluster, chance: Random) -> frozenset[int]:
    """The connections of one process are dead for ever, and nobody tells it."""
    member = _one(cluster, chance)
    pids = _bodies(member)
    cluster.proxy.tell(member.name, Link.swallow)
    cluster.wait(LEASE * 1.5)
    return pids


def _one(cluster: Cluster, chance: Random) -> Member:
    if chance.random() < 0.75:
        return cluster.busy_worker(chance)
    return cluster.ready("dispatcher", chance)


def _bodies(member: Member) -> frozenset[int]:
    return member.pids if member.kind == "worker" else frozenset()


def _stall(cluster: Cluster, name: str, pids: frozenset[int] | None, seconds: float) -> frozenset[int] | None:
    cluster.proxy.tell(name, Link.stall)
    cluster.wait(seconds)
    cluster.proxy.tell(name, Link.resume)
    return pids
