"""The peers, each with settings for throughput and others for precision; the README says where they come from."""

from __future__ import annotations

from tests.bench.peers.peer import Home, Peer, Setting

OURS = "punctual"

_DEFAULT = Setting(processes=1, options={})
"""Of ours: one dispatcher and one worker, which has its default processes and threads."""
_ALL = [
    Peer(
        name=OURS,
        title="django-punctual",
        home=Home.CHECKOUT,
        burst=_DEFAULT,
        precision=_DEFAULT,
        unfinished=(
            "SELECT EXISTS (SELECT FROM jobs_queueentry) "
            "OR (SELECT count(*) FROM jobs_job) <> (SELECT count(*) FROM jobs_outcome)"
        ),
        pace=6000,
    ),
    Peer(
        name="procrastinate",
        title="procrastinate",
        home=Home.PYTHON,
        burst=Setting(processes=2, options={"concurrency": 10, "poll": 0.1}),
        precision=Setting(processes=1, options={"concurrency": 10, "poll": 0.1}),
        unfinished="SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        share=0.1,
        pace=1500,
        analyze=True,
    ),
    Peer(
        name="pgqueuer",
        title="pgqueuer",
        home=Home.PYTHON,
        burst=Setting(processes=2, options={"batch": 200, "wait": 1.0}),
        precision=Setting(processes=1, options={"batch": 10, "wait": 1.0}),
        unfinished="SELECT EXISTS (SELECT FROM pgqueuer)",
        pace=5000,
        analyze=True,
    ),
    Peer(
        name="graphile",
        title="graphile-worker",
        home=Home.NODE,
        burst=Setting(
            processes=2,
            options={
                "concurrentJobs": 50,
                "maxPoolSize": 12,
                "pollInterval": 100,
                "localQueue": {"size": 500},
                "completeJobBatchDelay": 0,
                "failJobBatchDelay": 0,
            },
        ),
        precision=Setting(
            processes=1, options={"concurrentJobs": 10, "maxPoolSize": 12, "pollInterval": 100}
        ),
        unfinished="SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)",
        pace=6000,
    ),
    Peer(
        name="pgboss",
        title="pg-boss",
        home=Home.NODE,
        burst=Setting(
            processes=1,
            options={
                "batchSize": 500,
                "localConcurrency": 2,
                "pollingIntervalSeconds": 0.5,
                "burstWhenBatchFull": True,
            },
        ),
        precision=Setting(processes=1, options={"batchSize": 10, "pollingIntervalSeconds": 0.5}),
        unfinished=(
            "SELECT EXISTS (SELECT FROM pgboss.job WHERE name = 'peers' AND state IN ('created', 'active', 'retry'))"
        ),
        pace=5000,
    ),
    Peer(
        name="celery",
        title="celery",
        home=Home.PYTHON,
        burst=Setting(processes=1, options={"concurrency": 4}),
        precision=Setting(processes=1, options={"concurrency": 2}),
        unfinished="",
        share=0.25,
        pace=300,
        on_redis=True,
    ),
    Peer(
        name="djangotasks",
        title="django-tasks-db",
        home=Home.PYTHON,
        burst=Setting(processes=2, options={"interval": 0.1}),
        precision=Setting(processes=1, options={"interval": 0.1}),
        unfinished=(
            "SELECT EXISTS (SELECT FROM django_tasks_database_dbtaskresult WHERE status IN ('READY', 'RUNNING'))"
        ),
        share=0.05,
        pace=250,
    ),
]
PEERS = {peer.name: peer for peer in _ALL}
