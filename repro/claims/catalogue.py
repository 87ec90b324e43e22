"""The claims of the paper, and the statements of teaching texts around it: read from claims.toml and statements.toml.

Both are written before the runs that judge them, and every page of verdicts shows their hash. Statements are judged by
the same rules with an error rate of their own, so they do not make the test of any claim stricter. Claims about the
paper's own numbers are computed in `arithmetic.py`.
"""

import tomllib
from pathlib import Path
from typing import Any

from repro.claims import arithmetic
from repro.claims.claim import ACCURACY, BLEU, BOTH, F1, LOG_PPL, TEST_BLEU, ByHeart, Claim

SCALE_ORDER = ("smoke", "laptop", "captions", "single_gpu", "paper")  # a scale may judge all that earlier ones may
ENDPOINTS = {one.name: one for one in (LOG_PPL, BLEU, TEST_BLEU, ACCURACY, F1)}


def read_claims(file: Path) -> tuple[Claim, ...]:
    """Read claims, in the order of the file."""
    return tuple(_claim(id, **fields) for id, fields in tomllib.loads(file.read_bytes().decode()).items())


def _claim(
    id: str,
    *,
    scores: tuple[str, ...] = (),
    compute: str = "",
    over_fits: str = "",
    tests: tuple[str, ...] = (),
    **rest: Any,
) -> Claim:
    """Make a claim: `over_fits` is the row that must over-fit, `tests` are under tests/; a tuple is a list in TOML."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in rest.items()}
    return Claim(
        id=id,
        endpoints=tuple(ENDPOINTS[name] for name in scores) or BOTH,
        compute=getattr(arithmetic, compute) if compute else None,
        needs=ByHeart(row=over_fits) if over_fits else None,
        tests=tuple(f"tests/{test}" for test in tests),
        **fields,
    )


CLAIMS = read_claims(Path(__file__).with_name("claims.toml"))
STATEMENTS = read_claims(Path(__file__).with_name("statements.toml"))
LISTED = (*CLAIMS, *STATEMENTS)
