"""Run commands beside each other: python tests/beside.py "one command" "another".

What each of them said stands one after the other, with its seconds. The exit status is 0 only if that of each is.
"""

import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack


def main(commands: list[str]) -> int:
    """Start all, wait for all; returns how many failed."""
    started = time.monotonic()

    def begin(command: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        stack.callback(process.terminate)  # after Ctrl-C
        return process

    def end(process: "subprocess.Popen[bytes]") -> tuple[str, float]:
        return process.communicate()[0].decode(errors="replace"), time.monotonic() - started

    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        processes = [begin(command) for command in commands]
        for command, process, (said, seconds) in zip(commands, processes, pool.map(end, processes), strict=True):
            print(f"$ {command}\n{said}exit status {process.returncode} after {seconds:.0f} s", flush=True)
    return sum(process.returncode != 0 for process in processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
