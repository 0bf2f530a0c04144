"""Deaths: end the process on the writer thread, around the n-th commit of its life."""

import os
import signal
import threading

from wakeful.store.backend import Backend
from wakeful.testing.ledger import Ledger

# Whoever was told too early must have the time to act on it before the process ends.
PAUSE_S = 0.1


def arm(spec: str, backend: type[Backend], faults: Ledger) -> None:
    """Die at `before:N` or `after:N`: just before, or just after, the n-th COMMIT."""
    where, _, text = spec.partition(":")
    wanted = int(text)
    count = 0
    real_commit = backend.commit

    def die() -> None:
        threading.Event().wait(PAUSE_S)
        faults.note("killed", where=f"{where} commit {wanted}")
        os.kill(os.getpid(), signal.SIGKILL)

    def commit(self: Backend) -> None:
        nonlocal count
        count += 1
        if count == wanted and where == "before":
            die()
        real_commit(self)
        if count == wanted and where == "after":
            die()

    backend.commit = commit
