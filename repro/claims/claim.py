"""What a claim of the paper is, which scores settle it, and the forms that claims have."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from repro.claims.sizes import Hypers, filled, printed_sizes
from repro.results.record import BASE, PaperNumbers, Record

Kind = Literal[
    "direction",
    "magnitude",
    "equivalence",
    "best of family",
    "trend",
    "point value",
    "arithmetic",
    "structural",
    "measured",
    "qualitative",
]
PrintedRows = Mapping[str, PaperNumbers]  # "table/row" -> what the paper prints for it


# What is looked at


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A score by which rows are compared, and which differences in it count as none."""

    name: str
    split: Literal["dev", "test"]
    score: str  # as records name it
    sign: int  # of what is better: +1 where more is
    margin: float  # smaller differences are nearly none: the paper's words for 0.1 BLEU and for 0.4 lie around it
    widest: float  # interval of a point value that still says something
    decimals: int

    def of(self, record: Record) -> float | None:
        """More is better; None for a run that diverged or has no such score."""
        value = record.score(self.split, self.score)
        return None if record.status == "diverged" or value is None else self.sign * value

    def is_told(self, record: Record) -> bool:
        """Whether the run says it: one that diverged does, one made before the score was taken does not."""
        return record.status == "diverged" or record.score(self.split, self.score) is not None

    def printed(self, paper: PaperNumbers) -> float | None:
        """The paper's number for it, more is better; None where nothing is printed."""
        if self.score == "nll":
            return None if paper["ppl"] is None else self.sign * math.log(paper["ppl"])
        return paper["bleu"] if self.score in ("bleu", "bleu_published") else None


@dataclass(frozen=True, kw_only=True)
class F1Endpoint(Endpoint):
    """F1 of trees, of which Table 4 prints that on section 23."""

    def printed(self, paper: PaperNumbers) -> float | None:
        return paper.get("f1")


LOG_PPL = Endpoint(name="log PPL", split="dev", score="nll", sign=-1, margin=0.01, widest=0.03, decimals=3)
BLEU = Endpoint(name="BLEU", split="dev", score="bleu", sign=+1, margin=0.3, widest=1.0, decimals=2)
TEST_BLEU = Endpoint(
    name="BLEU (test)", split="test", score="bleu_published", sign=+1, margin=0.3, widest=1.0, decimals=2
)
ACCURACY = Endpoint(name="accuracy", split="dev", score="accuracy", sign=+1, margin=0.003, widest=0.01, decimals=4)
F1 = F1Endpoint(name="F1", split="test", score="f1", sign=+1, margin=0.3, widest=1.0, decimals=2)
BOTH = (LOG_PPL, BLEU)


@dataclass(frozen=True, kw_only=True)
class ByHeart:
    """What must hold for a claim about regularisation to be judged: a row without it over-fits."""

    row: str
    gap: float  # nats per token that its training loss must lie below dev at the end, mean over runs

    def unmet(self, runs: Sequence[Record]) -> str | None:
        """Why the claim cannot be tested on these runs of the row; None if it can."""
        ends = [(_end(run.curves["train"]["nll"]), run.curves["dev"]["nll"][-1]) for run in runs if _has_curves(run)]
        if not ends:
            return f"no curves of {self.row.split('/', 1)[1]} say whether it over-fits"
        train, dev = (statistics.fmean(column) for column in zip(*ends, strict=True))
        if dev - train >= self.gap:
            return None
        return (
            f"nothing to regularise: {self.row.split('/', 1)[1]} does not over-fit, its training loss ends below dev's "
            f"by {dev - train:.2f} nats per token, less than {self.gap:g}"
        )

    def note(self, runs: Sequence[Record]) -> str:  # beside `unmet`, whose code a list of claims is told by: it stays
        """By how much the row over-fits, where it does; nothing where no curve says so."""
        gaps = [run.curves["dev"]["nll"][-1] - _end(run.curves["train"]["nll"]) for run in runs if _has_curves(run)]
        if not gaps or statistics.fmean(gaps) < self.gap:
            return ""
        below = f"its training loss ends below dev's by {statistics.fmean(gaps):.2f} nats per token"
        return f"{self.row.split('/', 1)[1]} over-fits: {below}"


def _has_curves(run: Record) -> bool:
    return run.status == "finished" and bool(run.curves["train"]["nll"] and run.curves["dev"]["nll"])


def _end(curve: Sequence[float]) -> float:
    """The mean of the last tenth: single batches differ."""
    return statistics.fmean(curve[-max(1, len(curve) // 10) :])


class Checked(NamedTuple):
    """What the paper's own numbers come to."""

    holds: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the paper, in our own words, and what would settle it."""

    id: str  # C28b: the second check of claim 28
    where: str  # section of the paper
    sentence: str
    kind: Kind
    rows: tuple[str, ...] = ()  # "table/row"; of two the better first, of a trend from small to large
    endpoints: tuple[Endpoint, ...] = BOTH
    scale: str = "paper"  # the smallest that may judge it
    needs: ByHeart | None = None  # what must hold there besides
    named: tuple[str, ...] = ()  # of a family, the rows said to be best
    sizes: tuple[float, ...] = ()  # of a trend
    compute: Callable[[PrintedRows], Checked] | None = None
    tests: tuple[str, ...] = ()  # which settle it
    holds: bool = True  # what they settle
    missing: str = ""  # what it would take, where nothing here settles it
    template: str = ""  # the sentence with {better.d_k} and {worse.d_k} for the sizes of its two rows
    note: str = ""  # what a reader of its verdict must know

    @property
    def is_trained(self) -> bool:
        """Whether it is settled by records."""
        return self.kind in ("direction", "magnitude", "equivalence", "best of family", "trend", "point value")

    def sentence_here(self, hypers: Hypers) -> str:
        """The sentence with the sizes that its rows have at a scale; with the paper's where one is not known."""
        if not self.template or not {*self.rows} <= hypers.keys():
            return self.sentence
        better, worse = self.rows
        return filled(self.template, hypers[better], hypers[worse])

    @property
    def table(self) -> str:
        """The table that the claim stands under; the claims of a whole page share one error rate."""
        tables = [row.split("/")[0] for row in (*self.named, *self.rows)]
        return next((table for table in tables if table != BASE), BASE)


# Rows by name

B0 = f"{BASE}/{BASE}"
H1, H4, H16, H32 = (f"table3_A/h={h}" for h in (1, 4, 16, 32))
K16, K32 = (f"table3_B/d_k={d_k}" for d_k in (16, 32))
N2, N4, N8 = (f"table3_C/N={n}" for n in (2, 4, 8))
D256, D1024 = (f"table3_C/d_model={d}" for d in (256, 1024))
F1024, F4096 = (f"table3_C/d_ff={d}" for d in (1024, 4096))
DROP_0, DROP_2, SMOOTH_0, SMOOTH_2 = (
    f"table3_D/{row}" for row in ("P_drop=0.0", "P_drop=0.2", "eps_ls=0.0", "eps_ls=0.2")
)
LEARNED, BIG = "table3_E/learned positions", "table3_big/big"
UNREGULARISED = ByHeart(row=DROP_0, gap=0.1)
TABLE3 = (
    *(B0, H1, H4, H16, H32, K16, K32, N2, N4, N8, D256, D1024, F1024, F4096),
    *(DROP_0, DROP_2, SMOOTH_0, SMOOTH_2, LEARNED, BIG),
)
WSJ, SILVER = "table4/WSJ only", "table4/semi-supervised"
RNN_WSJ, RNN_SILVER, ATTENTION_WSJ, ATTENTION_SILVER = (
    f"table4/recurrent{kind}, {text}" for kind in ("", " with attention") for text in ("WSJ only", "semi-supervised")
)
BASE_DE, BIG_DE, BASE_FR, BIG_FR = (f"table2/{row}" for row in ("base en-de", "big en-de", "base en-fr", "big en-fr"))


# The forms


def direction(
    id: str,
    where: str,
    sentence: str,
    better: str,
    worse: str,
    *,
    scale: str,
    endpoints: tuple[Endpoint, ...] = BOTH,
    needs: ByHeart | None = None,
) -> Claim:
    """One row is better than another; the sentence may name their sizes, as {better.d_k}."""
    return Claim(
        id=id,
        where=where,
        sentence=filled(sentence, printed_sizes(better), printed_sizes(worse)),
        template=sentence,
        kind="direction",
        rows=(better, worse),
        scale=scale,
        endpoints=endpoints,
        needs=needs,
    )


def of_trees(id: str, sentence: str, better: str, worse: str) -> Claim:
    """One row of Table 4 has more F1 than another. Paper: section 6.3."""
    return direction(id, "6.3", sentence, better, worse, scale="laptop", endpoints=(F1,))


def magnitude(
    id: str,
    where: str,
    sentence: str,
    better: str,
    worse: str,
    *,
    endpoints: tuple[Endpoint, ...] = BOTH,
    needs: ByHeart | None = None,
) -> Claim:
    """By as much as the paper prints; its numbers come with the records. A sentence as of `direction`."""
    return Claim(
        id=id,
        where=where,
        sentence=filled(sentence, printed_sizes(better), printed_sizes(worse)),
        template=sentence,
        kind="magnitude",
        rows=(better, worse),
        endpoints=endpoints,
        needs=needs,
    )


def trend(id: str, where: str, sentence: str, rows: Mapping[str, float]) -> Claim:
    """More is better, over sizes as the paper has them: a scale divides them all by one number."""
    return Claim(
        id=id,
        where=where,
        sentence=sentence,
        kind="trend",
        rows=tuple(rows),
        sizes=tuple(rows.values()),
        scale="laptop",
    )


def best(id: str, where: str, sentence: str, rows: tuple[str, ...], named: tuple[str, ...]) -> Claim:
    """Some rows of a family are the best."""
    return Claim(id=id, where=where, sentence=sentence, kind="best of family", rows=rows, named=named, scale="captions")


def value(id: str, where: str, sentence: str, row: str, *, endpoints: tuple[Endpoint, ...] = BOTH) -> Claim:
    """A score as printed."""
    return Claim(id=id, where=where, sentence=sentence, kind="point value", rows=(row,), endpoints=endpoints)


def arithmetic(id: str, where: str, sentence: str, compute: Callable[[PrintedRows], Checked], *rows: str) -> Claim:
    """Settled by what the paper prints, of systems and of these rows."""
    return Claim(id=id, where=where, sentence=sentence, kind="arithmetic", compute=compute, rows=rows, scale="smoke")


def structural(id: str, where: str, sentence: str, *tests: str, holds: bool = True, note: str = "") -> Claim:
    """Settled by tests, to be found under tests/: where they pass they show it, or the opposite (`holds` False)."""
    return Claim(
        id=id,
        where=where,
        sentence=sentence,
        kind="structural",
        tests=tuple(f"tests/{test}" for test in tests),
        holds=holds,
        scale="smoke",
        note=note,
    )


def elsewhere(id: str, where: str, sentence: str, kind: Kind, missing: str, *, note: str = "") -> Claim:
    """Not settled by records of translation; says where, or what is missing."""
    return Claim(id=id, where=where, sentence=sentence, kind=kind, missing=missing, scale="smoke", note=note)
