"""What README says was found, in five sentences and one picture, made from the published records.

    python docs/front.py      writes README.md and docs/index.md between their marks, and docs/front.svg

Differences are those of rows less the base of the same seed; "±" is the half-width of their 95 % t-interval. A sentence
that the records do not bear is refused: its interval must lie where it says, its verdict must be the one that it names.
"""

import csv
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from repro.results.details import on_texts  # noqa: E402
from repro.results.frame import ResultSet, common, interval  # noqa: E402
from repro.results.record import BASE  # noqa: E402
from repro.storage.atomic import write_text  # noqa: E402

RESULTS, PICTURE = ROOT / "results", ROOT / "docs" / "front.svg"
PAGES = {ROOT / "README.md": "docs/front.svg", ROOT / "docs" / "index.md": "front.svg"}  # where each finds the picture
BEGIN, END = "<!-- found: made by docs/front.py -->\n", "<!-- end -->"
GENERATED, CAPTIONS = "laptop", "captions-bf16"


class Difference(NamedTuple):
    """A row less the base of the same seed."""

    mean: float
    half: float | None  # of the 95 % interval; None below three seeds
    paper: float | None  # the same difference as printed

    @property
    def side(self) -> int:
        """-1 or 1 where the whole interval lies below or above 0, else 0."""
        if self.half is None or abs(self.mean) <= self.half:
            return 0
        return 1 if self.mean > 0 else -1


@cache
def _read(scale: str) -> ResultSet:
    return ResultSet.read(RESULTS / scale)


def difference(scale: str, row: str, score: str = "bleu") -> Difference:
    """Of a row, as "table3_A/h=1". Raises ValueError where no seed has both."""
    table, _, name = row.partition("/")
    base = {one.seed: one for one in _read(scale).tables[BASE] if one.status == "finished"}
    of_row = [one for one in _read(scale).tables.get(table, ()) if (one.row, one.status) == (name, "finished")]
    pairs = common({one.seed: one for one in of_row}, base)
    scores = [[one.score("dev", score) for one in pair] for pair in pairs]
    values = [ours - theirs for ours, theirs in scores if ours is not None and theirs is not None]
    if not values:
        raise ValueError(f"{scale}: expected runs of {row} and of the base with one seed, found none.")
    mean, half = interval(values)
    ours, theirs = (one.paper.get(score) for one in pairs[0])
    printed = float(ours) - float(theirs) if isinstance(ours, float | int) and isinstance(theirs, float | int) else None
    return Difference(mean, half, printed)


def says(scale: str, row: str, side: int, score: str = "bleu", *, amount: bool = False) -> str:
    """The difference as text; `amount` leaves the sign to the words around it.

    Raises ValueError where its interval does not lie on that side of 0, for side 0 where it does not hold 0.
    """
    return _borne(difference(scale, row, score), f"{row} at {scale}", side, score, amount=amount)


def says_on_most_text(row: str, side: int, score: str) -> str:
    """By the mean of the last checkpoints, on the largest of the generated texts, as an amount; refused alike."""
    largest = on_texts(_read(GENERATED).everything)[row][-1]
    if largest.of_mean is None:
        raise ValueError(f"{row} on {largest.pairs:,} pairs: expected runs with the mean of their last checkpoints.")
    found = Difference(*getattr(largest.of_mean, score), None)
    return _borne(found, f"{row} on {largest.pairs:,} pairs", side, score, amount=True)


def _borne(found: Difference, what: str, side: int, score: str, *, amount: bool) -> str:
    if found.side != side:
        where = {-1: "below 0", 0: "around 0", 1: "above 0"}
        raise ValueError(
            f"README says that {what} differs from the base by {score} {where[side]}; expected an interval "
            f"there, got {found.mean:+.2f} ± {found.half}. Change the sentence in docs/front.py, or run more seeds."
        )
    digits = 1 if score == "bleu" else 2
    mean = f"{abs(found.mean):.{digits}f}" if amount else minus(f"{found.mean:+.{digits}f}")
    return f"{mean} ± {found.half:.{digits}f}"


def verdicts(scale: str) -> dict[str, str]:
    """The verdict of each claim of the paper at a scale, as its table of claims has it."""
    with (RESULTS / scale / "claims.csv").open(encoding="utf-8", newline="") as file:
        return {line["claim"]: line["verdict"] for line in csv.DictReader(file)}


def require(claim: str, verdict: str, *scales: str) -> None:
    """Raise ValueError where a claim has another verdict than the one that a sentence names."""
    for scale in scales:
        if (found := verdicts(scale).get(claim)) != verdict:
            raise ValueError(
                f"README calls {claim} {verdict!r} at {scale}, its verdict is {found!r}. Change docs/front.py."
            )


def counted() -> dict[str, int]:
    """How many claims about trained rows have a verdict by sign, over both scales; where these differ it is none."""
    both = [verdicts(scale) for scale in (GENERATED, CAPTIONS)]
    found = {"sign as printed": 0, "opposite sign": 0, "undetermined": 0}
    for claim in {*both[0], *both[1]}:
        judged = {one.get(claim) for one in both} & found.keys()
        if judged:
            found[_of_several({str(one) for one in judged})] += 1
    return found


def _of_several(judged: set[str]) -> str:
    """The sign that is shown at one scale or at both; two signs that differ leave the claim undetermined."""
    signs = judged - {"undetermined"}
    return signs.pop() if len(signs) == 1 else "undetermined"


def minus(text: str) -> str:
    """A number with the sign that print has."""
    return text.replace("-", "−")


def everywhere(row: str) -> str:
    """How much BLEU a row loses on generated text, on captions and in the paper."""
    here = (says(scale, row, -1, amount=True) for scale in (GENERATED, CAPTIONS))
    return f"{', '.join(here)} and {printed(row)}"


def printed(row: str) -> str:
    """By how much BLEU differs in the paper, without its sign."""
    return f"{abs(difference(GENERATED, row).paper or 0):.1f}"


def sentences() -> Iterator[str]:
    """What was found, each sentence with its numbers. Raises ValueError for one that the records do not bear."""
    for claim in ("C30a", "C30e", "C29a", "C31a"):
        require(claim, "sign as printed", GENERATED, CAPTIONS)
    yield (
        f"**Smaller is worse, as printed.** A third of the depth loses {everywhere('table3_C/N=2')} BLEU on generated "
        f"text, on captions and in the paper; half the width {everywhere('table3_C/d_model=256')}; keys of a quarter "
        f"of the size {everywhere('table3_B/d_k=16')}; no dropout {everywhere('table3_D/P_drop=0.0')}."
    )
    require("C28b", "undetermined", GENERATED, CAPTIONS)
    one = "table3_A/h=1"
    yield (
        f"**One head instead of eight: undetermined.** {says(GENERATED, one, -1)} BLEU on generated text, too little "
        f"for a verdict, {says(CAPTIONS, one, 0)} on captions, {minus('-' + printed(one))} in the paper."
    )
    require("C27a", "opposite sign", GENERATED, CAPTIONS)
    helps = " and ".join(says(of, "table3_D/eps_ls=0.0", 1, "ppl", amount=True) for of in (GENERATED, CAPTIONS))
    yield (
        f"**Label smoothing helps perplexity here**, by {helps}; the paper says that it hurts. That depends on how "
        "often the text is seen: once, not eighteen times, log perplexity is "
        f"{says_on_most_text('eps_ls=0.0', -1, 'nll')} lower without smoothing, and BLEU without dropout "
        f"{says_on_most_text('P_drop=0.0', 1, 'bleu')} higher (last ten checkpoints averaged)."
    )
    soft = "ladder/soft alignment"
    yield (
        "**Attention alone does not win at this size.** Recurrence with soft alignment, as large and trained as long, "
        f"is {says(GENERATED, soft, 1, amount=True)} BLEU above the base on generated text, and not told apart from it "
        f"on captions ({says(CAPTIONS, soft, 0)})."
    )
    count = counted()
    yield (
        f"**Of the paper's claims about trained rows** {count['sign as printed']} came out with the printed sign, "
        f"{count['opposite sign']} with the opposite one, {count['undetermined']} undetermined; the others need a "
        "larger size."
    )


# The picture

ROWS = {  # as Table 3 has them; sizes are the paper's, and a scale has them in proportion
    "table3_A": ("h=1", "h=4", "h=16", "h=32"),
    "table3_B": ("d_k=16", "d_k=32"),
    "table3_C": ("N=2", "N=4", "N=8", "d_model=256", "d_model=1024", "d_ff=1024", "d_ff=4096"),
    "table3_D": ("P_drop=0.0", "P_drop=0.2", "eps_ls=0.0", "eps_ls=0.2"),
    "table3_E": ("learned positions",),
    "table3_big": ("big",),
}
WIDTH, TOP, STEP, LEFT, PANEL, GAP = 800, 62, 18, 146, 200, 16  # pixels
STYLE = """
.card{fill:#fff;stroke:#d0d7de}.ink{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#e4e8ec}.zero{stroke:#8c959f}
.paper{fill:#9a4600;stroke:#9a4600}.ours{fill:#0b5cad;stroke:#0b5cad}.hollow{fill:#fff}
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}.title{font-weight:600}
@media(prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#3d444d}.ink{fill:#f0f6fc}.soft{fill:#9198a1}
.grid{stroke:#262c36}.zero{stroke:#656c76}.paper{fill:#f0a35e;stroke:#f0a35e}.ours{fill:#6cb6ff;stroke:#6cb6ff}
.hollow{fill:#0d1117}}
"""


def picture() -> str:
    """Three panels, each with an axis of its own: the paper's differences in BLEU, captions, generated text."""
    rows = [f"{table}/{row}" for table, of in ROWS.items() for row in of]
    captions, generated = map(_measured, (CAPTIONS, GENERATED))
    panels = [("paper (newstest2013)", _printed(generated)), ("captions", captions), ("generated", generated)]
    height = TOP + STEP * len(rows) + 34
    drawn = [_row_name(row, TOP + STEP * i) for i, row in enumerate(rows)]
    for i, (title, found) in enumerate(panels):
        drawn += _panel(LEFT + i * (PANEL + GAP), title, [found.get(row) for row in rows], "ours" if i else "paper")
    hollow = "hollow: it holds 0, or seeds are too few"
    legend = f"BLEU (dev), row less base. Bar: 95 % interval over seeds; {hollow}. Each axis is its own."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img"><title>Differences of the rows of Table 3 from the base</title><style>{STYLE}</style>'
        f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>\n'
        + "\n".join([*drawn, f'<text class="soft" x="16" y="{height - 12}">{legend}</text>'])
        + "\n</svg>\n"
    )


def _printed(measured: dict[str, Difference]) -> dict[str, Difference]:
    """What the paper prints for these rows."""
    found = {row: one.paper for row, one in measured.items()}
    return {row: Difference(round(value, 1), 0.0, None) for row, value in found.items() if value is not None}


def _measured(scale: str) -> dict[str, Difference]:
    """The rows of the picture that a scale has."""
    there = {f"{one.table}/{one.row}" for one in _read(scale).everything if one.status == "finished"}
    wanted = [f"{table}/{row}" for table, of in ROWS.items() for row in of]
    return {row: difference(scale, row) for row in wanted if row in there}


def _row_name(row: str, y: int) -> str:
    table, _, name = row.partition("/")
    letter = table.removeprefix("table3_")
    shown = f"({letter}) {name}" if len(letter) == 1 else name
    return f'<text class="ink" x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{shown}</text>'


def _panel(left: int, title: str, found: list[Difference | None], colour: str) -> list[str]:
    """Points and bars on an axis that holds all of them, with four round numbers at most on each side of 0."""
    known = [one for one in found if one]
    low = min(0.0, *(one.mean - (one.half or 0) for one in known))
    high = max(0.0, *(one.mean + (one.half or 0) for one in known))
    step = next(one for one in (0.5, 1, 2, 5, 10, 20) if (high - low) / one < 5)
    bottom, scale = TOP + STEP * len(found), (PANEL - 16) / (high - low)

    def x(value: float) -> str:
        return f"{left + 8 + (value - low) * scale:.1f}"

    drawn = [f'<text class="ink title" x="{left + PANEL // 2}" y="24" text-anchor="middle">{title}</text>']
    for tick in (i * step for i in range(-9, 10)):
        if low <= tick <= high:
            kind = "grid" if tick else "zero"
            drawn.append(f'<line class="{kind}" x1="{x(tick)}" x2="{x(tick)}" y1="{TOP - 12}" y2="{bottom - 8}"/>')
            shown = minus(f"{tick:+g}") if tick else "0"
            drawn.append(f'<text class="soft" x="{x(tick)}" y="{TOP - 18}" text-anchor="middle">{shown}</text>')
    for i, one in enumerate(found):
        y = TOP + STEP * i
        if one is None:
            drawn.append(f'<text class="soft" x="{x(0)}" y="{y + 4}" text-anchor="middle">not run</text>')
            continue
        if one.half:
            ends = x(one.mean - one.half), x(one.mean + one.half)
            drawn.append(f'<line class="{colour}" x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}" stroke-width="2"/>')
        hollow = "" if one.side or one.half == 0 else " hollow"  # 0: printed by the paper, without an interval
        drawn.append(f'<circle class="{colour}{hollow}" cx="{x(one.mean)}" cy="{y}" r="4" stroke-width="1.5"/>')
    return drawn


# Into the pages


def page(text: str, picture_at: str) -> str:
    """A page with what was found between its marks. Raises ValueError where they are gone."""
    block = [
        *(f"{number}. {sentence}" for number, sentence in enumerate(sentences(), start=1)),
        "",
        f"![Rows of Table 3 less the base, in BLEU: the paper's, on captions, on generated text]({picture_at})",
    ]
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"expected {BEGIN.strip()} and {END} below it, found {text[:60]!r}... Put the marks back.")
    return f"{before}{begin}" + "\n".join(block) + f"\n{end}{after}"


if __name__ == "__main__":
    for file, picture_at in PAGES.items():
        write_text(file, page(file.read_text("utf-8"), picture_at))
    write_text(PICTURE, picture())
