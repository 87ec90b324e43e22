"""The two pages that a folder opens with, README.md: of one scale, and of all scales together. Paper: all of it.

The second has the claims about trained rows, each with its verdict at every scale that settles any; verdicts that no
run settles are the same at all scales, and stand there once.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from repro.claims.blocks import ALPHA
from repro.claims.decisions import FIRST_SEED, MIN_RUNS, OF_SIGN, OF_SIZE, OUTCOMES, SEEDS, Outcome
from repro.claims.judge import Judged, may_judge, place_of_scale
from repro.pages import columns
from repro.pages.claims import ABOUT, OF_PAPER, OF_TEXTS, RULES, agreement, group_of, outcomes, settles, told_counts
from repro.pages.columns import has_part, numbers, reading, rules_between, tabled, with_minus
from repro.pages.scale_data import ScaleData
from repro.render import page
from repro.render.page import Block, Column, Emphasis, Heading, Link, Listing, Page, Picture, Strong, Table, Text, Words
from repro.render.text import several
from repro.results.comparable import computed_on
from repro.results.details import RATIO, on_texts
from repro.results.frame import FIGURES, DataFrame, runs_in
from repro.results.record import Record

NAME = "README"
PICTURES = {  # name of the file -> what it shows; the paper's figures first, then ours
    "figure1_architecture": "The architecture, drawn from the modules of the model (figure 1)",
    "figure2_attention": "Scaled dot-product and multi-head attention, from the operations executed (figure 2)",
    "figure3_long_distance": "The second-to-last encoder layer at “making” of the paper's sentence (figure 3)",
    "figure4_sharp_heads": "The two heads that are sharpest at “its” of the paper's sentence (figure 4)",
    "figure5_different_heads": "The two heads that differ most on the paper's sentence (figure 5)",
    "softmax_saturation": "What dividing by √d_k prevents (section 3.2.1)",
    "mask": "Scores of six words, what the mask leaves of them, and the softmax of that (section 3.2.3)",
    "norms": "Which cells of a batch share a mean: layer and batch normalisation (section 3.1)",
    "softmax_of_unequal": "The softmax of two equal scores and one twice as large, and its Jacobian",
    "position_codes": "Position codes, and how similar that of one position is to those around it",
    "where_the_source_enters": "Three decoders: where the source enters each of them",
    "soft_alignment": "Where soft alignment looks while it translates, beside the base's mean head (section 3.2.3)",
    "source_gradients": "Which positions of the source the first word written depends on, in three systems",
    "activations": "Mean and variance of the activations between sub-layers, with norms and without (section 3.1)",
    "head_similarity": "How similar the heads of our base are, within a layer and between layers (section 3.2.2)",
    "differences": "Each row of Table 3 against the base, beside what the paper prints. Each interval is of one row by "
    "itself, at 95 %; verdicts ask for wider ones, so one that leaves out 0 may be undetermined",
    "quality_and_cost": "Quality against the cost of training",
    "text_sizes": "What rows are worth on little text and on much, with equal updates: each less the base of the same "
    "text and seed, with its 95 % interval; above 0 the row is better",
}
SHOWN = ("differences", "text_sizes", "quality_and_cost")  # the page of the scale shows the first two that exist
OF_A_TABLE = {  # by the prefix of the file's name, which ends with the table's name
    "curves_": "How the rows of {} learned",
    "operations_": "Dev loss of the rows of {} over updates and over FLOPs of training",
    "fading_": "BLEU of the rows of {} by the length of the source and by the position in the translation",
}
FIGURES_LINK = Link(f"{FIGURES}.md", FIGURES, to_page=True)


def page_of_scale(
    data: ScaleData, titles: Mapping[str, str], pictures: Collection[str], found: Mapping[str, Iterable[Words]]
) -> Page:
    """The page of one scale: what was found, two pictures, and links to the pages of its tables, by their `titles`.

    Without verdicts, for exploration, what was `found` on the page of each table is listed.
    """
    runs = data.runs
    count = f"{several(runs.n, 'run')} of {several(runs.n_rows, 'row')}, {' '.join(runs.took)} in all. "
    links = sorted((Link(title, place, to_page=True) for place, title in titles.items()), key=lambda link: link.text)
    is_tried = TRIED.startswith(f"{runs.scale}-") and (data.result_set.folder.parent / TRIED).is_dir()
    beside = "Beside each page stand its table as LaTeX and all its numbers as CSV, under the same name."
    explored = [
        (Link(name, name, to_page=True), ": ", *page.inlines(line)) for name, lines in found.items() for line in lines
    ]
    return Page(
        page.made_from("the records beside it"),
        page.blocks(
            Heading((Emphasis("Attention Is All You Need"), f" at scale {runs.scale}"), 1),
            Text(agreement(data)),
            Listing(tuple(explored)) if data.evidence.is_exploration else outcomes(data.judged),
            Text((count, *_standing(data))),
            Text(_averaging(data.result_set.everything)),
            Text((f"{ABOUT_TRIED} ", Link("More", "../README", to_page=True), ".") if is_tried else ""),
            _pictures_shown(pictures),
            Heading("Tables"),
            Listing(((*page.joined([(link,) for link in links], "; "), "."), beside)),
            reading(own=data.result_set.own),
        ),
    )


def found_in(table: Page) -> list[Words]:
    """The findings with which the page of a table begins."""
    before = takewhile(lambda block: not isinstance(block, Table), table.blocks)
    return [item for lines in before if isinstance(lines, Listing) for item in lines.items]


def figures_page(data: ScaleData, pictures: Collection[str]) -> Page | None:
    """The page of all pictures of a scale, the paper's first, after a summary; None where there are none."""
    if not pictures:
        return None
    said = Text(page.joined([agreement(data), _standing(data)]))
    shown = [Picture(f"{FIGURES}/{name}.svg", text) for name, text in _captions(pictures).items()]
    origin, heading = page.made_from("the pictures beside it"), Heading(f"Figures at scale {data.runs.scale}", 1)
    return Page(origin, page.blocks(heading, said, shown))


def _standing(data: ScaleData) -> Words:
    """What the runs may show; if none is evidence, or they are too few for every claim, only that."""
    if data.evidence.is_exploration:
        return "All of it is ", Strong("exploration"), ": no run counts as evidence."
    if not settles(data.judged):
        return ("No claim about trained rows has all the runs that it needs, so nothing is settled here.",)
    claims, statements = (Link(f"{of.name}.md", of.name, to_page=True) for of in (OF_PAPER, OF_TEXTS))
    shows = "A page of this scale shows ", Strong(data.runs.claim)
    return *shows, ". Each claim with its numbers: ", claims, "; each statement: ", statements, "."


def _averaging(records: Iterable[Record]) -> str:
    """Whether the mean of the last checkpoints has less spread over seeds, and the same order of rows of Table 3.

    Of the rows that were scored so with all declared seeds; nothing where there are fewer than three.
    """
    from pandas import DataFrame

    runs = [one for one in records if has_part(one.table) and one.last_mean and one.seed - FIRST_SEED in range(SEEDS)]
    told, orders, n = [], [], 0
    for name, score, form in (("log PPL", "nll", ".3f"), ("BLEU", "bleu", ".2f")):
        cells = [(run.row, *(run.score(of, score) for of in ("dev", "last_mean_dev"))) for run in runs]
        frame = DataFrame(cells, columns=["row", "last", "mean"])
        rows = frame.groupby("row").filter(lambda of: len(of) == SEEDS).groupby("row")
        if (n := len(rows)) < MIN_RUNS:
            return ""
        last, mean = rows.var().mean() ** 0.5
        told.append(f"{'not ' * (mean >= last)}less in {name} (standard deviation {last:{form}} → {mean:{form}})")
        orders.append(f"{rows.mean().corr('spearman').to_numpy()[0, 1]:.2f} in {name}")
    return with_minus(
        f"Scored by the mean of the last checkpoints instead of the last one, runs of a row differ between seeds "
        f"{FIRST_SEED} to {FIRST_SEED + SEEDS - 1} {' and '.join(told)}; the two orders of {n} rows of Table 3 have a "
        f"rank correlation of {' and '.join(orders)}."
    )


def _captions(there: Collection[str]) -> dict[str, str]:
    """The captions of the existing pictures, the paper's first."""
    of_tables = {
        name: text.format(name.removeprefix(begins))
        for begins, text in OF_A_TABLE.items()
        for name in sorted(there)
        if name.startswith(begins)
    }
    return {name: text for name, text in (PICTURES | of_tables).items() if name in there}


def _pictures_shown(there: Collection[str]) -> tuple[Block, ...]:
    """Two of the existing pictures, and a link to all of them."""
    if not there:
        return ()
    captions = _captions(there)
    shown = [Picture(f"{FIGURES}/{name}.svg", captions[name]) for name in SHOWN if name in captions][:2]
    first = ", those of the paper first" if any(name.startswith("figure") for name in captions) else ""
    told = Text((f"{several(len(captions), 'picture')}{first}: ", FIGURES_LINK, "."))
    return Heading("Figures"), *shown, told


# All scales together

LADDER, LONGER = "ladder", "ladder_long"  # the systems before the Transformer; some of them after more updates
ALIGNMENT = "S26c"  # the statement that the Transformer is better than soft alignment
UNNAMED = r"\(R\)| Processor|\w+, (?=family)|, stepping \d+"  # of a processor's name, what tells no two apart
WORTH = "text_sizes"  # the picture of what rows are worth on little text and on much
TRIED = "laptop-20000-pairs"  # the first text of laptop; its present one was chosen for the effect of dropout on it
ABOUT_LADDER = (
    "Earlier systems as large as the base, by their means on dev; times are of the fastest run, and compare on one "
    "processor only."
)
ABOUT_TRIED = (
    "The generated text of laptop had 20,000 pairs at first, then 5,000, and has 3,000 now: it became smaller until "
    "dropout showed the paper's sign, and the sign of smoothing turned round with it. So C27a, C30a, C30e, C31a and "
    "C31b served to choose that text, and their verdicts at laptop are no evidence of their own."
)
NEITHER = {OF_SIZE.neither, OF_SIGN.neither}
Verdicts = tuple[Judged, ...]  # the verdicts on one claim, scale by scale


def page_of_all(scales: Iterable[ScaleData]) -> Page | None:
    """The page: counts by scale, findings, then claim by claim; None where no scale settles a claim about rows."""
    settled = [one for one in scales if settles(one.judged)]  # by size, then by the number of claims that they judged
    settled.sort(key=lambda one: -sum(of.is_judged for of in one.judged))
    scales, shown = (sorted(some, key=lambda one: place_of_scale(one.runs.scale)) for some in (scales, settled))
    if not shown:
        return None
    every = [of for of in zip(*(one.judged for one in shown), strict=True) if of[0].claim.is_trained]
    lines = sorted(every, key=lambda of: [*ABOUT].index(group_of(of[0].claim)))
    rules = Link("How verdicts are made", f"{'../..' if shown[0].result_set.own else '..'}/{RULES}")
    return Page(
        page.made_from("the verdicts of the scales in this folder"),
        page.blocks(
            Heading("What came of the paper's claims, scale by scale", 1),
            Text(f"The {several(len(lines), 'claim')} about trained rows at {several(len(shown), 'scale')}:"),
            Listing(tuple(map(_of_scale, shown))),
            Heading("What came out"),
            Listing(tuple(_patterns(lines))),
            tuple(_attention(scales)),
            tuple(_texts(scales)),
            Heading("Claim by claim"),
            _table(shown, lines),
            Text(_others(shown, scales)),
            tuple(_untrained(shown[0])),
            Text((_promise(shown), rules, ".")),
        ),
    )


def _of_scale(one: ScaleData) -> Words:
    """A scale in one line: laptop, which shows the sign of large effects: sign as printed 10, undetermined 9."""
    trained = [of for of in one.judged if of.claim.is_trained and of.is_judged]
    scale = one.runs.scale
    said = f", which shows {one.runs.claim}: {told_counts(trained)}"
    each = Link("Each with its numbers", f"{scale}/{OF_PAPER.name}", to_page=True), "."
    return page.joined([(Link(scale, f"{scale}/README", to_page=True), said), agreement(one), each])


# Findings beyond single verdicts


def _attention(scales: Iterable[ScaleData]) -> Iterator[Block]:
    """Systems before the Transformer compared with it, at every scale where one was run."""
    found = [one for one in scales if LADDER in one.frames and one.frames[LADDER]["dev/bleu"].count() > 1]
    if not found:
        return
    run = Counter(row for one in found for row in one.frames[LADDER].query("n > 0")["row"])
    rows = {row for row, n in run.items() if n > 1 or len(found) == 1}
    yield Heading("Is attention all you need, here?")
    yield Text(ABOUT_LADDER)
    for one in found:
        yield Text(page.joined([(Strong(one.runs.scale), ":"), *columns.found(one.frames[LADDER], rows).items]))
        for frame in (one.frames[name] for name in (LADDER, LONGER) if name in one.frames):
            yield _systems(frame[frame["row"].isin(rows) | (frame["table"] == LONGER)], one.result_set.everything)
    judged = [(one.runs.scale, of) for one in found for of in one.stated if of.claim.id == ALIGNMENT]
    if told := ", ".join(f"{of.verdict} at {scale}" for scale, of in judged):
        yield Text(f"{ALIGNMENT}, {judged[0][1].sentence}: {told}.")


def _systems(frame: DataFrame, records: Iterable[Record]) -> Table:
    """Rows of one scale: scores, what they cost, and where their dev loss crosses that of the base."""
    frame = frame[frame["n"] > 0]
    fastest = [min(of, key=lambda run: run.cost["train_seconds"]) for of in runs_in(frame, records)]
    seconds = [run.cost["train_seconds"] / run.cost["steps"] for run in fastest]
    return tabled(
        [
            Column("", "row", [*frame["row"]]),
            Column("", "PPL", numbers(frame["dev/ppl"], ".2f")),
            Column("", "BLEU", numbers(frame["dev/bleu"], ".1f")),
            Column("", "length", numbers(frame.reindex(columns=[RATIO])[RATIO], ".3f")),
            columns.operations_columns(frame)[1],
            Column("training", "ms an update", numbers((1_000 * of for of in seconds), ".0f")),
            Column("training", "processor", [re.sub(UNNAMED, "", computed_on(run.stamp)) for run in fastest]),
            Column("", "dev loss over updates", columns.led(frame, "updates"), is_words=True),
        ]
    )


def _texts(scales: Iterable[ScaleData]) -> Iterator[Block]:
    """The effect of dropout and of smoothing over the size of the text, as a picture; nothing where there is none."""
    drawn = [one for one in scales if (one.result_set.folder / FIGURES / f"{WORTH}.svg").exists()]
    if not drawn:
        return
    on = on_texts(record for one in drawn for record in one.result_set.everything)
    both = [{at.found.nll[0] > 0 for at in on.get(row, ()) if at.found} for row in ("eps_ls=0.0", "P_drop=0.0")]
    what = "The sign of smoothing and of dropout" if both == [{False, True}] * 2 else "What a row is worth"
    yield Heading(f"{what} depends on how often the text is seen")
    if any(one.runs.scale == TRIED for one in scales):
        yield Text((f"{ABOUT_TRIED} The rows on the first: ", Link(TRIED, f"{TRIED}/README", to_page=True), "."))
    names = [one.runs.scale for one in drawn]
    yield from (Picture(f"{name}/{FIGURES}/{WORTH}.svg", f"{PICTURES[WORTH]} ({name})") for name in names)


# Verdicts, in words


def _promise(shown: Sequence[ScaleData]) -> str:
    """How far the verdicts may be trusted, and what they do not cover."""
    level, n = 100 * ALPHA, len(shown)
    together = f", and so to {level * n:g} % over these {n} together" if n > 1 else ""
    return (
        f"The rules are meant to keep the chance of any wrong verdict to {level:g} % at each scale{together}. "
        "A verdict holds for the text, the model and the budget of its scale; sizes in the sentences are the paper's. "
    )


def _patterns(lines: Iterable[Verdicts]) -> Iterator[Words]:
    """Claims by pattern: sign as printed at every scale that judged them: 11 claims, 9 of them judged at more ..."""
    groups: dict[tuple[Outcome, ...], list[Verdicts]] = {}
    for line in lines:
        if found := {one.verdict for one in line if one.is_judged}:
            groups.setdefault(tuple(outcome for outcome in OUTCOMES if outcome in found), []).append(line)
    for pattern in sorted(groups, key=lambda of: (len(of), [OUTCOMES.index(outcome) for outcome in of])):
        members = groups[pattern]
        more = sum(sum(one.is_judged for one in line) > 1 for line in members) * (len(pattern) == 1)
        where = "every scale that judged them" if len(pattern) == 1 else "another"
        twice = f", {more} of them judged at more than one" * bool(more)
        told = f": {'; '.join(line[0].claim.sentence for line in members)}" * (not {*pattern} <= NEITHER)
        strong = page.joined([(Strong(outcome),) for outcome in pattern], " at one scale, ")
        yield *strong, f" at {where}: {several(len(members), 'claim')}{twice}{told}."


def _untrained(one: ScaleData) -> Iterator[Block]:
    """The claims and statements that no run settles, with what settles them; those not judged by their ids alone."""
    for title, judged in (("claims", one.judged), ("statements of teaching texts, and ours", one.stated)):
        untrained = [of for of in judged if not of.claim.is_trained]
        settled, waiting = ([of for of in untrained if of.is_judged == is_so] for is_so in (True, False))
        settled.sort(key=lambda of: [*ABOUT].index(of.claim.kind))
        if not settled:
            continue
        reasons = [with_minus(of.reason) if of.claim.kind == "arithmetic" else "" for of in settled]
        told = [". ".join(filter(None, (by, of.claim.note))) for by, of in zip(reasons, settled, strict=True)]
        kinds = [ABOUT[of.claim.kind] for of in settled]
        columns = (
            Column("", "claim", [of.claim.id for of in settled]),
            Column("", "kind", kinds, is_words=True),
            Column("", "what is said", [of.sentence for of in settled], is_words=True),
            Column("", "verdict", [(Strong(of.verdict),) for of in settled], is_words=True),
            Column("", "by, and what is right", told, is_words=True),
        )
        yield Heading(f"What needs no trained row: {title}")
        yield Text(f"Alike at every scale: {told_counts(settled)}")
        yield tabled(columns, rules_between(kinds))
        yield Text(f"Not judged: {', '.join(of.claim.id for of in waiting)}." if waiting else "")


# Claim by claim


def _table(shown: Sequence[ScaleData], lines: Sequence[Verdicts]) -> Table:
    claims = [line[0].claim for line in lines]
    return Table(
        (
            Column("", "claim", [claim.id for claim in claims]),
            Column("", "table", [ABOUT[group_of(claim)].partition(":")[0] for claim in claims], is_words=True),
            Column("", "what the paper says", [claim.sentence for claim in claims], is_words=True),
            *(
                Column("", at.runs.scale, [_cell(line[i], at.runs.scale) for line in lines], is_words=True)
                for i, at in enumerate(shown)
            ),
        )
    )


def _cell(one: Judged, scale: str) -> Words:
    """The verdict, bold if it is decided; for a scale that is too small, the scale that would be large enough."""
    if one.is_judged:
        return one.verdict if one.verdict in NEITHER else (Strong(one.verdict),)
    return "too few runs" if may_judge(scale, one.claim) else f"needs {one.claim.scale}"


def _others(shown: Sequence[ScaleData], scales: Iterable[ScaleData]) -> Words:
    """The scales whose runs settle nothing; nothing where there is none."""
    names = sorted({one.runs.scale for one in scales} - {one.runs.scale for one in shown})
    links = page.joined([(Link(name, f"{name}/README", to_page=True),) for name in names], ", ")
    return ("Exploration, or too few runs to settle anything about trained rows: ", *links, ".") if names else ""
