"""Which lists of claims there were, and which claims each held, so that a claim that comes later voids no run.

Claims of the paper and statements of texts around it are one list here, and two on pages.

A record keeps the digest of the list that was there when its run began. `lists.json` says which claims that list held,
each by the digest of all that decides its verdict: a run may settle those, and none that was added or changed since.

Run:  python -m repro.claims.lists          (notes the list of today; after a change of the catalogue, before any run)
"""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from repro.claims.blocks import ALPHA
from repro.claims.catalogue import LISTED, SCALE_ORDER
from repro.claims.claim import Claim
from repro.claims.decisions import FIRST_SEED, MAX_DIVERGED, MIN_RUNS, SEEDS
from repro.storage.atomic import write_json

FILE = Path(__file__).with_name("lists.json")
WORDS = frozenset({"where", "says", "missing", "note", "decimals"})  # decide nothing
MODEL = "rows + seeds, Holm"  # the analysis; a new name here asks for new runs
LEVELS = (MODEL, SCALE_ORDER, ALPHA, FIRST_SEED, SEEDS, MIN_RUNS, MAX_DIVERGED)  # of all claims


def catalogue_digest(claims: tuple[Claim, ...] = LISTED) -> str:
    """16 digits of the SHA-256 of all that decides a verdict, and of no word."""
    return digest_of([claim_digest(claim) for claim in claims])


@functools.cache  # a page asks it of each claim for every run
def claim_digest(claim: Claim) -> str:
    """The same of one claim: its kind, rows, scale, scores with their margins, what must hold for it, and LEVELS.

    Tests and computations by their names, not by what they do.
    """
    return digest_of([LEVELS, _plain(claim)])


def _plain(value: Any) -> Any:
    """As JSON has it, without words."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.name not in WORDS}
    if isinstance(value, tuple):
        return [*map(_plain, value)]
    return value.__name__ if callable(value) else value


def digest_of(value: Any) -> str:
    """Of what JSON can hold: 16 digits of its SHA-256."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def lists() -> Mapping[str, frozenset[str]]:
    """By its digest each list that there was: the digests of its claims. Today's is there, noted or not.

    Raises ValueError where the file was edited: the digest of a list is that of its claims.
    """
    noted = json.loads(FILE.read_bytes())
    for digest, claims in noted.items():
        if digest_of(claims) != digest:
            raise ValueError(f"{FILE}: list {digest} does not hold the claims it should. Restore the file from git.")
    today = [claim_digest(claim) for claim in LISTED]
    return {digest: frozenset(claims) for digest, claims in (noted | {digest_of(today): today}).items()}


def held(digest: str | None, claim: Claim) -> bool:
    """Whether the list of this digest held the claim as it stands today."""
    return digest is not None and claim_digest(claim) in lists().get(digest, ())


def note(claims: Sequence[Claim] = LISTED) -> str:
    """Write the list of today among the others; returns its digest."""
    today = [claim_digest(claim) for claim in claims]
    write_json(FILE, json.loads(FILE.read_bytes()) | {digest_of(today): today})
    return digest_of(today)


if __name__ == "__main__":
    print(note())
