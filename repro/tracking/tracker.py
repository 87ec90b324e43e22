"""How a process deals with MLflow: how long it waits for an answer, and what it tells of failures.

No work depends on the tracker: each request is made in a thread, and a thread that does not finish in time is left
behind. After that the process does not wait again until the tracker answers; so a tracker that is silent, or that
answers a byte at a time for ever, costs one wait in all.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from repro.tracking.client import RUNS, Broken, check_store, hide, reason, repair, say

FILE, SERVER, IN_TROUBLE = 30.0, 10.0, 5.0  # seconds: a new file has to be made, a server only to answer

_LEFT_BEHIND: list[threading.Thread] = []  # in this process


def somebody_is_left_behind() -> bool:
    """Whether a thread that was left behind is still running."""
    return any(thread.is_alive() for thread in _LEFT_BEHIND)


class Tracker:
    """The store at `uri`, for the runs in a folder, and how it has behaved so far."""

    def __init__(self, uri: str, *, runs: Path = RUNS, tell: Callable[[str], None] = say) -> None:
        self.uri, self.runs, self._tell, self._told = uri, runs, tell, False
        self._usual = FILE if uri.startswith("sqlite:") else SERVER
        self.patience = self._usual  # seconds that the next wait may last

    def look(self) -> None:
        """Raise for a store that can never work, before work begins; tell of a server that does not answer now."""
        if warning := check_store(self.uri, self.runs):
            self.patience = IN_TROUBLE
            self.tell(warning)

    def tell(self, trouble: str) -> None:
        """Tell the user of a trouble, once until MLflow again has all of a run."""
        if not self._told:
            self._told = True
            self._tell(trouble)

    def answers(self) -> None:
        """To be called when a request succeeded."""
        self.patience = self._usual

    def has_all(self) -> None:
        """To be called when it has all of a run."""
        self._told = False
        self.answers()

    def fails(self, error: object) -> None:
        """To be called when a request failed; tells the user what to type later."""
        self.patience = min(self.patience, IN_TROUBLE)
        if isinstance(error, Broken):
            self.tell(reason(error, self.runs))
        else:
            self.tell(
                f"MLflow at {hide(self.uri)} is behind: {reason(error).rstrip('.')}. Nothing is lost: the journals in "
                f"{self.runs} have everything. To catch up, type: {repair(self.uri, self.runs)}"
            )

    def wait(self, thread: threading.Thread, patience: float | None = None) -> bool:
        """Wait for a thread that makes a request; tells, and returns False, if the thread was left behind."""
        patience = self.patience if patience is None else patience
        thread.join(patience)
        if not thread.is_alive():
            return True
        _LEFT_BEHIND.append(thread)
        self.fails(f"no answer within {patience:g} s")
        self.patience = 0.0
        return False

    def ask(self, work: Callable[[], object]) -> bool:
        """Run `work` in a thread; False if it was left behind, or not begun because an earlier one was."""
        if not self.patience:
            return False
        thread = threading.Thread(target=work, name="work with the tracker", daemon=True)
        thread.start()
        return self.wait(thread)
