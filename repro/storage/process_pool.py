"""Worker processes that end with the command that started them, whatever ends it."""

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
    "A worker process imports the program's main file, which starts the same work again. Put all that the file does, "
    'except imports and functions, under `if __name__ == "__main__":`.'
)


def check_main_is_guarded() -> None:
    """Raise RuntimeError in a worker process that is still importing its parent's main file.

    Call it before waiting for a lock: the parent may hold it, and both would wait for ever.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # the test that `multiprocessing` itself uses
        raise RuntimeError(RUN_AGAIN)


@contextmanager
def process_pool(
    n: int, begin: Callable[..., None], *arguments: Any, where_one_ends: str
) -> Iterator[ProcessPoolExecutor]:
    """A pool of `n` processes, each of which calls `begin(*arguments)` first.

    Raises OSError with the message `where_one_ends` if something outside ends one of them.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(n, context, _begin, (begin, *arguments)) as pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            raise OSError(where_one_ends) from error
        except BaseException:  # no future is cancelled first: a thread of Python 3.11's pool would fail on it
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _begin(begin: Callable[..., None], *arguments: Any) -> None:
    """Start a worker: it leaves Ctrl-C to its parent, and ends when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = multiprocessing.parent_process()
    assert asked is not None

    def leave() -> None:
        asked.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
    begin(*arguments)
