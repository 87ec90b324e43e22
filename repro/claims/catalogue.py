"""The claims of the paper and the statements of teaching texts around it, and all lists of them so far.

They are read from claims.toml and statements.toml, both written before the runs that judge them; every page of verdicts
shows their hash. Statements are judged by the same rules with an error rate of their own, so they do not make the test
of any claim stricter.

A record keeps the digest of the list, of claims and statements together, that was current when its run began.
`lists.json` has the claims of each list, by the digest of everything that decides their verdicts. A run may settle
those, but none added or changed since, so adding a claim does not invalidate earlier runs.

Run:  python -m repro.claims.catalogue      (notes the list of today; after a change of the catalogue, before any run)
"""

import functools
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from repro.claims.blocks import ALPHA
from repro.claims.claim import ACCURACY, BLEU, BOTH, F1, LOG_PPL, TEST_BLEU, ByHeart, Claim
from repro.claims.decisions import FIRST_SEED, MAX_DIVERGED, MIN_RUNS, SEEDS
from repro.storage.atomic import write_json

SCALE_ORDER = ("smoke", "laptop", "captions", "single_gpu", "paper")  # a scale may judge all that earlier ones may
ENDPOINTS = {one.name: one for one in (LOG_PPL, BLEU, TEST_BLEU, ACCURACY, F1)}


def read_claims(file: Path) -> tuple[Claim, ...]:
    """Read claims, in the order of the file."""
    return tuple(_claim(id, **fields) for id, fields in tomllib.loads(file.read_bytes().decode()).items())


def _claim(id: str, *, scores: tuple[str, ...] = (), over_fits: str = "", **rest: Any) -> Claim:
    """Make a claim: `over_fits` is the row that must over-fit, `tests` are under tests/; a tuple is a list in TOML."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in rest.items()}
    fields["tests"] = tuple(f"tests/{test}" for test in fields.get("tests", ()))
    endpoints = tuple(ENDPOINTS[name] for name in scores) or BOTH
    return Claim(id=id, endpoints=endpoints, needs=ByHeart(row=over_fits) if over_fits else None, **fields)


CLAIMS = read_claims(Path(__file__).with_name("claims.toml"))
STATEMENTS = read_claims(Path(__file__).with_name("statements.toml"))
LISTED = (*CLAIMS, *STATEMENTS)


# All lists so far

FILE = Path(__file__).with_name("lists.json")
WORDS = frozenset({"where", "says", "missing", "note", "decimals"})  # fields that decide no verdict
# common to all claims; a new name of the analysis requires new runs
LEVELS = ("rows + seeds, Holm", SCALE_ORDER, ALPHA, FIRST_SEED, SEEDS, MIN_RUNS, MAX_DIVERGED)


def catalogue_digest(claims: Sequence[Claim] = LISTED) -> str:
    """16 digits of the SHA-256 of everything that decides verdicts, without their wording."""
    return _digest([*map(claim_digest, claims)])


@functools.cache  # a page needs it for each claim and every run
def claim_digest(claim: Claim) -> str:
    """The same for one claim: its kind, rows, scale, scores with their margins, condition, and LEVELS.

    Tests and computations count by their names, not by their code.
    """
    return _digest([LEVELS, _plain(claim)])


def _plain(value: Any) -> Any:
    """A value as JSON stores it, without wording."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.name not in WORDS}
    return [*map(_plain, value)] if isinstance(value, tuple) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def lists() -> Mapping[str, frozenset[str]]:
    """The digests of the claims of each list so far, by the list's digest. Today's is included, noted or not."""
    noted = json.loads(FILE.read_bytes())
    if edited := [digest for digest, claims in noted.items() if _digest(claims) != digest]:
        raise ValueError(f"{FILE}: list {edited[0]} does not hold the claims it should. Restore the file from git.")
    noted[catalogue_digest()] = [*map(claim_digest, LISTED)]
    return {digest: frozenset(claims) for digest, claims in noted.items()}


def held(digest: str | None, claim: Claim) -> bool:
    """Whether the list with this digest held the claim as it is today."""
    return digest is not None and claim_digest(claim) in lists().get(digest, ())


def note(claims: Sequence[Claim] = LISTED) -> str:
    """Add today's list to the others; returns its digest."""
    digest = catalogue_digest(claims)
    write_json(FILE, json.loads(FILE.read_bytes()) | {digest: [*map(claim_digest, claims)]})
    return digest


if __name__ == "__main__":
    print(note())
