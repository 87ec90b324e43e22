"""How a process deals with MLflow: it waits for a thread that sends for so long, and says once that MLflow is behind.

No work depends on the tracker: journals are the truth, and `tracking sync` sends what a thread did not.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from repro.tracking.client import RUNS, check_store, reason, repair, say

LIMIT, IN_TROUBLE = 30.0, 5.0  # seconds to wait for a thread, and once something went wrong


class Tracker:
    """The store at `uri`, for the runs in a folder."""

    def __init__(self, uri: str, *, runs: Path = RUNS, tell: Callable[[str], None] = say) -> None:
        self.uri, self.runs, self._tell, self._told = uri, runs, tell, False
        self.limit = LIMIT

    def look(self) -> None:
        """Raise for an address that can never work, before work begins; tell of a server that does not answer now."""
        if warning := check_store(self.uri, self.runs):
            self.tell(warning)

    def tell(self, trouble: str) -> None:
        """Tell the user of a trouble; of the first one only, as one command mends them all."""
        self.limit = min(self.limit, IN_TROUBLE)
        if not self._told:
            self._told = True
            self._tell(trouble)

    def fails(self, error: object) -> None:
        """To be called when a request failed; tells the user what to type later."""
        self.tell(
            f"MLflow at {self.uri} is behind: {reason(error).rstrip('.')}. Nothing is lost: the journals in "
            f"{self.runs} have everything. To catch up, type: {repair(self.uri, self.runs)}"
        )

    def wait(self, thread: threading.Thread, limit: float | None = None) -> bool:
        """Wait for a thread that sends; tells, and returns False, if it is late. No later thread is waited for then."""
        limit = self.limit if limit is None else limit
        thread.join(limit)
        if thread.is_alive():
            self.fails(f"no answer within {limit:g} s")
            self.limit = 0.0
        return not thread.is_alive()

    def ask(self, work: Callable[[], object]) -> None:
        """Do `work` in a thread, and wait for it; not begun once a thread was late. Tells if it fails."""

        def tried() -> None:
            try:
                work()
            except Exception as error:  # whatever the tracker does, the work that it mirrors is done
                self.fails(error)

        if self.limit:
            thread = threading.Thread(target=tried, name="work with the tracker", daemon=True)
            thread.start()
            self.wait(thread)
