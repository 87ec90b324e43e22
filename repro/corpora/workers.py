"""Folders that many processes fill together, each whole or absent; nothing here knows what is in them.

Whatever kills the work, it goes on at a folder, and processes that fill the same folders at once share the work without
knowing of each other.
"""

import os
import random
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from repro.corpora.parallel_text import Parallel
from repro.storage.folder_cache import MANIFEST, made_once, verified
from repro.storage.process_pool import process_pool

TELL_SECONDS = 10.0  # between two words about the work

FolderFacts = dict[str, Any]  # what a step says of the folder that it filled
Tell = Callable[[str], None]


def made_all(
    tasks: Mapping[Path, Callable[[Path], FolderFacts]],
    parts: Sequence[Parallel],
    workers: int,
    tell: Tell,
) -> list[FolderFacts]:
    """Have every folder as its task fills it, and the facts of each, in order."""
    made = whole(tasks)
    if missing := [folder for folder in tasks if folder not in made]:
        for part in parts:
            if (part.source.parent / MANIFEST).exists():  # fetching unpacked it
                verified(part.source.parent)
        # each process goes its own way, so those that prepare the same corpus at once rarely make the same shard
        random.Random(f"{socket.gethostname()}/{os.getpid()}").shuffle(missing)
        started = told = time.monotonic()
        for n, (folder, facts) in enumerate(made_each({folder: tasks[folder] for folder in missing}, workers), 1):
            made[folder] = facts
            if (now := time.monotonic()) - told > TELL_SECONDS:
                told, left = now, (now - started) / n * (len(missing) - n)
                tell(f"{folder.parent.name}: {n} of {len(missing)} shards, {left / 60:.0f} min left")
    return [made[folder] for folder in tasks]


def whole(folders: Iterable[Path]) -> dict[Path, FolderFacts]:
    """The facts of the folders that are there and undamaged: each is read and compared with its hashes."""

    def found(folder: Path) -> FolderFacts | None:
        try:
            return verified(folder)
        except (FileNotFoundError, ValueError):
            return None

    wanted = list(folders)
    with ThreadPoolExecutor() as threads:  # hashing lets other threads run
        return {folder: one for folder, one in zip(wanted, threads.map(found, wanted), strict=True) if one is not None}


def made_each(
    tasks: Mapping[Path, Callable[[Path], FolderFacts]], workers: int, apart: bool = False
) -> Iterator[tuple[Path, FolderFacts]]:
    """Make each folder, in as many processes as may work; in whatever order they come. One needs no other process,
    unless it is to work `apart`, with as many threads as it likes.
    """
    workers = min(workers, len(tasks))
    if workers == 1 and not apart:
        yield from ((folder, made_once(folder, task)) for folder, task in tasks.items())
        return
    ended = (
        f"A process that worked on {next(iter(tasks)).parent} has ended: from outside, for want of memory? Or it could "
        "not start, see above. What was finished is kept: the same command goes on, and with fewer --workers it needs "
        "less memory."
    )
    with process_pool(workers, _allow_threads, workers == 1, where_one_ends=ended) as pool:
        pending = {pool.submit(made_once, folder, task): folder for folder, task in tasks.items()}
        for done in as_completed(pending):
            yield pending[done], done.result()


def usable_cores() -> int:
    """That this process may use; of several that train together each has its share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _allow_threads(allow: bool) -> None:
    """Of several processes each has one thread."""
    os.environ["TOKENIZERS_PARALLELISM"] = str(allow).lower()
