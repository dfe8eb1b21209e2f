"""Public signals, and the one receiver that logs: verbs emit, this module words it."""

from __future__ import annotations

import logging
from typing import Any

from django.dispatch import Signal, receiver

from jobs.leases.settle import Ended, PutBack, Settled
from jobs.results import Completed, Failed
from jobs.states import JobState

logger = logging.getLogger(__name__)

attempts_settled = Signal()
"""After the commit of a batch: `settled` (Settled: the batch, fate by job id, and what was fenced). Sent from the
threads of a worker that settle and claim, by its supervisor and by the rescuer; receivers must be quick."""


def tell_settled(sender: Any, settled: Settled) -> None:
    """Send it. Whatever a receiver raises is logged and ends nothing, even SystemExit."""
    try:
        attempts_settled.send_robust(sender, settled=settled)
    except BaseException:
        logger.exception("a receiver of attempts_settled failed")


@receiver(attempts_settled)
def log_settled(sender: Any, *, settled: Settled, **kwargs: Any) -> None:
    """One line for each attempt that did not end well; a completed one is worth a line only for debugging."""
    debug = logger.isEnabledFor(logging.DEBUG)
    for settlement in settled.batch:
        if type(settlement.result) is Completed and not debug and not settled.fenced:
            continue
        held = settlement.held
        fate = settled.fates.get(held.job_id)
        words = {"job": str(held.job_id), "type": held.job_type, "attempt": held.attempt}
        if held.job_id in settled.fenced:
            logger.warning("fenced", extra=words)
        elif isinstance(fate, Ended) and fate.state is JobState.FAILED:
            logger.error("failed", extra={**words, "error": fate.error})
        elif isinstance(fate, PutBack) and isinstance(settlement.result, Failed):
            error = settlement.result.error
            logger.warning(
                "retryable",
                extra={**words, "error": f"{error.cls}: {error.message}"[:500], "wait": fate.wait},
            )
        elif isinstance(fate, Ended) and debug:
            logger.debug(fate.state.value, extra=words)
