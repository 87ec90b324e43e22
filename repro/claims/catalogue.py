"""What a claim is, the claims of the paper and the statements of teaching texts, and all lists of them so far.

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
import math
import re
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args

from repro.claims.blocks import ALPHA
from repro.claims.decisions import FIRST_SEED, MAX_DIVERGED, MIN_RUNS, SEEDS
from repro.model.config import BASE as PAPER_BASE
from repro.results.labels import FIELDS
from repro.results.record import BASE, PaperNumbers, Record
from repro.storage.atomic import write_json

# Sizes that a claim speaks of

Hypers = Mapping[str, Mapping[str, Any]]  # "table/row" -> its hyper-parameters at a scale


def printed_sizes(row: str) -> dict[str, Any]:
    """The sizes that the name of "table/row" says it sets at the paper's size: d_k 16 for "table3_B/d_k=16"."""
    named = re.fullmatch(r"[^/]+/(?P<field>\w+)=(?P<value>[\d.]+)", row)
    if named is None:
        return vars(PAPER_BASE)
    field = FIELDS[named["field"]]
    return {**vars(PAPER_BASE), field: type(getattr(PAPER_BASE, field))(named["value"])}


Trained = Literal["direction", "equivalence", "best of family", "trend"]  # settled by records
Kind = Trained | Literal["point value", "arithmetic", "structural", "measured", "qualitative"]


# Endpoints


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A score by which rows are compared, and the margin below which differences are nearly none."""

    name: str
    split: str  # dev or test
    score: str  # its name in records
    sign: int  # +1 where more is better, else -1
    margin: float  # below it differences are nearly none; in BLEU it lies between 0.1 and 0.4, by the paper's words
    decimals: int

    def of(self, record: Record) -> float | None:
        """The run's score, turned so that more is better; None for a run that diverged or has no such score."""
        value = record.score(self.split, self.score)
        return None if record.status == "diverged" or value is None else self.sign * value

    def by_seed(self, runs: Iterable[Record]) -> dict[int, float]:
        """The scores of a row's runs that have one."""
        return {run.seed: value for run in runs if (value := self.of(run)) is not None}

    def printed(self, paper: PaperNumbers) -> float | None:
        """The paper's number, turned so that more is better; None where nothing is printed."""
        if self.score == "nll":
            return None if paper["ppl"] is None else self.sign * math.log(paper["ppl"])
        if self.score == "f1":  # of section 23, Table 4
            return paper.get("f1")
        return paper["bleu"] if self.score in ("bleu", "bleu_published") else None


LOG_PPL = Endpoint(name="log PPL", split="dev", score="nll", sign=-1, margin=0.01, decimals=3)
BLEU = Endpoint(name="BLEU", split="dev", score="bleu", sign=+1, margin=0.3, decimals=2)
TEST_BLEU = Endpoint(name="BLEU (test)", split="test", score="bleu_published", sign=+1, margin=0.3, decimals=2)
ACCURACY = Endpoint(name="accuracy", split="dev", score="accuracy", sign=+1, margin=0.003, decimals=4)
F1 = Endpoint(name="F1", split="test", score="f1", sign=+1, margin=0.3, decimals=2)
BOTH = (LOG_PPL, BLEU)


@dataclass(frozen=True, kw_only=True)
class ByHeart:
    """What must hold for a claim about regularisation to be judged: a row without it over-fits."""

    row: str
    gap: float = 0.1  # nats per token by which its final training loss must lie below dev loss, mean over runs

    def met(self, runs: Sequence[Record]) -> tuple[bool, str]:
        """Whether the row over-fits in these finished runs of it, and how far in their mean, in words."""
        name, curves = row_of(self.row), [run.curves for run in runs if run.status == "finished"]
        losses = [(of["dev"]["nll"], of["train"]["nll"]) for of in curves if of["dev"]["nll"] and of["train"]["nll"]]
        if not losses:
            return False, f"no curves of {name} say whether it over-fits"
        # of training the mean of the last tenth, since single batches differ
        seen = [statistics.fmean(train[-max(1, len(train) // 10) :]) for _, train in losses]
        gap = statistics.fmean(dev[-1] for dev, _ in losses) - statistics.fmean(seen)
        ends = f"its training loss ends below dev's by {gap:.2f} nats per token"
        if gap >= self.gap:
            return True, f"{name} over-fits: {ends}"
        return False, f"nothing to regularise: {name} does not over-fit, {ends}, less than {self.gap:g}"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the paper, in our own words, and what would settle it."""

    id: str  # C28b: the second check of claim 28
    where: str  # section of the paper
    says: str  # the sentence; {better.d_k} and {worse.d_k} are sizes of its two rows
    kind: Kind
    rows: tuple[str, ...] = ()  # "table/row"; for two rows the better first, for a trend from small to large
    endpoints: tuple[Endpoint, ...] = BOTH
    scale: str = "smoke"  # the smallest that may judge it
    needs: ByHeart | None = None  # a further condition on the scale
    named: tuple[str, ...] = ()  # for a family, the rows said to be best
    sizes: tuple[float, ...] = ()  # for a trend, the paper's sizes; a scale divides them all by one number
    compute: str | None = None  # the check of `arithmetic.CHECKS` on the printed numbers that settles it
    tests: tuple[str, ...] = ()  # the tests that settle it
    holds: bool = True  # whether passing tests show that it holds
    chose: str = ""  # the scale whose text was chosen by this claim's sign, so that it is no evidence of its own there
    missing: str = ""  # what it would take to settle it, where nothing here does
    note: str = ""  # what a reader of its verdict must know

    @property
    def is_trained(self) -> bool:
        """Whether it is settled by records."""
        return self.kind in get_args(Trained)

    @property
    def sentence(self) -> str:
        """The sentence with the paper's sizes."""
        return self.sentence_here({row: printed_sizes(row) for row in self.rows})

    def sentence_here(self, hypers: Hypers) -> str:
        """The sentence with the sizes of its rows at a scale, or with the paper's if one is not known."""
        if "{" not in self.says:
            return self.says
        if not {*self.rows} <= hypers.keys():
            return self.sentence
        better, worse = (SimpleNamespace(**hypers[row]) for row in self.rows)
        return self.says.format(better=better, worse=worse)

    @property
    def table(self) -> str:
        """The table under which the claim stands; the claims of a whole page share one error rate."""
        return next((of for row in (*self.named, *self.rows) if (of := row.split("/")[0]) != BASE), BASE)


def row_of(row: str) -> str:
    """The name in "table/row"."""
    return row.split("/", 1)[1]


def rows_scored(claims: Iterable[Claim], split: str) -> set[str]:
    """The rows that claims compare by any score of this split; they share one estimate of the spread between seeds."""
    return {row for claim in claims if split in {one.split for one in claim.endpoints} for row in claim.rows}


# Rows by name

TABLE3 = (
    f"{BASE}/{BASE}",
    *(f"table3_A/h={h}" for h in (1, 4, 16, 32)),
    *(f"table3_B/d_k={d_k}" for d_k in (16, 32)),
    *(f"table3_C/{row}" for row in ("N=2", "N=4", "N=8", "d_model=256", "d_model=1024", "d_ff=1024", "d_ff=4096")),
    *(f"table3_D/{row}" for row in ("P_drop=0.0", "P_drop=0.2", "eps_ls=0.0", "eps_ls=0.2")),
    *("table3_E/learned positions", "table3_big/big"),
)
B0, H1, H4, H16, H32, K16, K32, N2, N4, N8, D256, D1024, F1024, F4096, DROP_0, *_ = TABLE3
BASE_DE, BASE_FR = (f"table2/base {pair}" for pair in ("en-de", "en-fr"))


# All of them

SCALE_ORDER = ("smoke", "laptop", "captions", "single_gpu", "paper")  # a scale may judge all that earlier ones may
ENDPOINTS = {one.name: one for one in (LOG_PPL, BLEU, TEST_BLEU, ACCURACY, F1)}


def read_claims(file: Path) -> tuple[Claim, ...]:
    """Read claims, in the order of the file."""
    claims = []
    for id, of in tomllib.loads(file.read_bytes().decode()).items():
        endpoints = tuple(ENDPOINTS[name] for name in of.pop("scores", ())) or BOTH
        needs = ByHeart(row=of.pop("over_fits")) if "over_fits" in of else None
        of["tests"] = [f"tests/{test}" for test in of.get("tests", ())]
        fields: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in of.items()}
        claims.append(Claim(id=id, endpoints=endpoints, needs=needs, **fields))
    return tuple(claims)


CLAIMS = read_claims(Path(__file__).with_name("claims.toml"))
STATEMENTS = read_claims(Path(__file__).with_name("statements.toml"))
LISTED = (*CLAIMS, *STATEMENTS)


# All lists so far

FILE = Path(__file__).with_name("lists.json")
WORDS = frozenset({"where", "says", "missing", "note", "chose", "decimals"})  # fields that decide no verdict
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
