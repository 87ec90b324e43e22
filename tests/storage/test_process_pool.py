"""Processes that share work: what ends one is named, and what ends the command ends them."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from repro.storage.process_pool import process_pool


def test_a_worker_that_ends_raises_the_given_message() -> None:
    with pytest.raises(OSError, match="what then"), process_pool(1, gc.enable, where_one_ends="what then") as pool:
        pool.submit(os._exit, 1).result()


def test_each_worker_is_initialised_first() -> None:
    with process_pool(1, os.putenv, "REPRO_BEGAN", "yes", where_one_ends="") as pool:
        told = pool.submit(subprocess.check_output, ["sh", "-c", "echo $REPRO_BEGAN"]).result()
    assert told == b"yes\n"


def interrupted() -> None:
    with process_pool(2, gc.enable, where_one_ends="") as pool:
        pool.submit(os.getpid).result()  # one has begun
        for _ in range(5):
            pool.submit(time.sleep, 600)
        raise KeyboardInterrupt


def test_an_interrupt_ends_all_workers() -> None:
    before = multiprocessing.active_children()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for one in multiprocessing.active_children():
        if one not in before:
            one.join(60)
            assert one.exitcode == -signal.SIGTERM


KILLED = """
import gc, os, time
from repro.storage.process_pool import process_pool

if __name__ == "__main__":
    with process_pool(2, gc.enable, where_one_ends="") as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
        os._exit(9)
"""


def test_no_worker_outlives_a_killed_command(tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    done = subprocess.run([sys.executable, str(program)], stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 9
    helper, ends = int(done.stdout), time.monotonic() + 60
    while psutil.pid_exists(helper) and psutil.Process(helper).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < ends, "it is still there"
        time.sleep(0.05)
