"""Processes that share work: none outlives the command that asked, whatever ends it."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

RUN_AGAIN = (
    "A process that this program started runs the program's own file again, down to here. Put what the file does, its "
    'imports and functions aside, under `if __name__ == "__main__":`.'
)


def check_main_is_guarded() -> None:
    """Raise RuntimeError in a process that was started to help and is still about to import its parent's main file.

    Before it waits for a lock that the parent holds: both would wait for ever.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # as `multiprocessing` itself finds it
        raise RuntimeError(RUN_AGAIN)


@contextmanager
def process_pool(
    n: int, begin: Callable[..., None], *arguments: Any, where_one_ends: str
) -> Iterator[ProcessPoolExecutor]:
    """A pool of `n` processes, each of which calls `begin(*arguments)` first.

    Raises OSError `where_one_ends` from outside: a sentence that says what then.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(n, context, _begin, (begin, *arguments)) as pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            raise OSError(where_one_ends) from error
        except BaseException:  # nothing is cancelled first: Python 3.11 trips over what is, in a thread of the pool
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _begin(begin: Callable[..., None], *arguments: Any) -> None:
    """Ctrl-C is answered by who asked; when that process is gone, so is this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = multiprocessing.parent_process()
    assert asked is not None

    def leave() -> None:
        asked.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
    begin(*arguments)
