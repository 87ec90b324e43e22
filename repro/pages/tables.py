"""The page of an experiment's table: scores, what the rows are, how they learned, other test sets, how it was made.

Table 2 has the systems that the paper prints beside our runs, and the cost column worked out again; Table 3 whole has
the paper's columns, without differences; Table 4 has the printed parsers; that of the anchor the scores that the
authors of its recipe published. Paper: Tables 2 to 4, section 6.3.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.claims.judge import Judged
from repro.corpora.treebanks import TREEBANKS
from repro.pages import columns
from repro.pages.claims import ABOUT, OF_TEXTS
from repro.pages.columns import DELTA, HEADINGS, NAMED, PARTS, TABLE_3, marked, numbers, row_column, spreads, tabled
from repro.paper import TABLE_2, TABLE_4, Pair, computed_flops
from repro.render.page import COMMAND, Block, Code, Column, Heading, Link, Listing, Page, Table, Text, blocks, made_from
from repro.results.comparable import SCORERS
from repro.results.details import F1_THIRDS, KEPT, LENGTHS, OVERS, PLACES, THIRDS
from repro.results.frame import COSTS, DataFrame
from repro.results.labels import AT_PAPER_SIZE, both, command_of, listed_rows
from repro.results.places import RETIRED
from repro.results.record import BASE

TABLE_2_NAME = "table2"
PAIRS: tuple[Pair, Pair] = ("en-de", "en-fr")
ABOUT_PARTS = "Thirds of dev by source length, and of each translation; kept: BLEU of its last third in % of its first."
ABOUT_CURVES = (
    "From where on a row's mean dev loss lies above or below that of a Transformer trained for as many updates, or of "
    "the base, and by how much where the shorter curve ends, in nats per word-piece."
)
ABOUT_FURTHER = "Test sets beside the text of a run, each with the n seeds scored on it; no verdict is read from them."
ABOUT_PRINTED = marked(
    "Newstest2014, as printed. **FLOPs** are those printed, and again **worked out** as GPUs x days x the sustained "
    "rate that section 6.1 grants each kind of GPU; an ensemble costs its 8 members. What Deep-Att ran on is not "
    "known, and ConvS2S's GPUs and days are fitted: chosen because they give its printed costs, they confirm nothing. "
    "For English-French, section 6.1 and the NeurIPS version print 41.0 for the big model where this table has 41.8."
)
ABOUT_OURS = marked(
    "BLEU on the test set of this scale, read once. **FLOPs** are counted from the matrix products of the real tokens "
    "trained on, not from time and a rate. The first line is the base model of Table 3, whose checkpoints are not "
    "averaged; **averaged** is the number of checkpoints whose mean is scored, **apart** the updates between them."
)
EXPLORATION = "Exploration: no run of this scale counts as evidence, so a table of it settles nothing."
ABOUT_SETTINGS = marked("A row shows what it changes of the base, **(in brackets)** the value at the paper's own size.")


def page_of_table(frame: DataFrame, scale: str, name: str, judged: Sequence[Judged] = ()) -> Page:
    """The page of one table; `judged` are the paper's claims and the statements of other texts."""
    if name == TABLE_2_NAME:
        found, sections = columns.scored(frame, "test/bleu", "BLEU on test"), _sections_of_table_2(frame, judged)
    elif is_like_others(name, frame):
        found = Listing((*columns.found(frame).items, *columns.anchor_found(frame).items))
        sections = _sections(frame, name, judged)
    else:
        found, sections = columns.scored(frame, "test/f1", "F1 on test"), _sections_of_parsers(frame, name)
    whole, titles = name == TABLE_3, ABOUT | {TABLE_2_NAME: "Table 2", TABLE_3: "Table 3"}
    origin = f"the records in {name}/" + f" and {BASE}/" * ("dev/f1" not in frame)
    return Page(
        made_from("the records beside it" if whole else origin),
        blocks(
            Heading(f"{titles.get(name, name)} at scale {scale}", 1),
            _which_text(frame),
            opening(frame, found),
            sections,
            ending(frame, "all_tables" if whole else name, scale),
        ),
    )


def is_like_others(name: str, frame: DataFrame) -> bool:
    """Whether a table has the columns that most tables have, so that it can be shown together with them."""
    return name != TABLE_2_NAME and "dev/f1" not in frame.columns


def _sections(frame: DataFrame, name: str, judged: Sequence[Judged]) -> Iterator[Block]:
    """Most tables in three parts, each with the names of the rows first, and ruled between experiment files."""
    whole, systems = name == TABLE_3, columns.has_systems(frame)
    row = _under_letters(frame) if whole else row_column(frame)
    ruled = columns.rules_between(list(frame["table"]))
    dev = [*columns.columns_of_dev(frame), *columns.length_columns(frame), *columns.columns_of_last_mean(frame)]
    dev = [one for one in dev if not whole or one.heading != DELTA or one.group == columns.OF_TRANSLATIONS]
    yield from columns.anchor_section(frame)
    yield tabled([row, *dev, *columns.verdict_columns(frame, judged)], ruled)
    within = any(one.claim.rows and all(row.startswith(f"{name}/") for row in one.claim.rows) for one in judged)
    link = Link(f"{OF_TEXTS.name}.md", OF_TEXTS.name, to_page=True)
    yield Text(("What is said of two of these rows, and whether it holds: ", link, ".") if within else "")
    yield Heading("What the rows are")
    operations = columns.operations_columns(frame) if systems else []
    yield tabled([row, *columns.setting_columns(frame), *columns.size_columns(frame), *operations], ruled)
    yield about_settings(frame)
    if systems:
        yield from _thirds(frame, ruled)
        yield from _along_training(frame)
    yield Heading("Test set and time")
    test, cost = columns.columns_of_test(frame), columns.cost_columns(frame)
    yield tabled([row, *test, *cost], ruled)
    yield from further_section(frame, ruled)


def _under_letters(frame: DataFrame) -> Column:
    """The names of the rows under the letters of the paper's Table 3: (A) h=1."""
    letters = [of.removeprefix(PARTS) for of in frame["table"]]
    names = zip(letters, row_column(frame).texts, strict=True)
    return Column("", "row", [f"({letter}) {name}" if len(letter) == 1 else name for letter, name in names])


# Sections of any page


def opening(frame: DataFrame, lines: Listing) -> tuple[Block, ...]:
    """The beginning of a page: what was found, and what the scale may show. For exploration this comes first."""
    if frame.attrs.get(columns.EXPLORED):
        return Text(EXPLORATION), lines
    may = frame.attrs["shared"].get(("settings", "claim"))
    return lines, Text(f"A table of this scale shows {may}." if may else "")


def about_settings(frame: DataFrame) -> Text:
    """What the cells of the settings mean, and every setting of the base row if it was run."""
    if frame["table"].iloc[0] != BASE or not frame["n"].iloc[0]:
        return Text(ABOUT_SETTINGS)
    names = [name for name in HEADINGS if name not in columns.unused(frame)]
    pairs = {name: (frame[name].iloc[0], frame[name + AT_PAPER_SIZE].iloc[0]) for name in names}
    said = [(", ", HEADINGS[name], f" {both(*pair, name)}") for name, pair in pairs.items() if pair[0] is not None]
    return Text((*ABOUT_SETTINGS, " Base row: ", *[*itertools.chain.from_iterable(said)][1:], "."))


def by_length(
    frame: DataFrame, groups: Mapping[str, Mapping[str, str]], ruled: Iterable[int] = ()
) -> tuple[Block, ...]:
    """Scores by thirds, group by group and heading by heading, where every run has them."""
    scores = [score for of in groups.values() for score in of.values()]
    if not {*scores} <= {*frame.columns} or frame[scores[0]].isna().all():
        return ()
    shown = [Column(group, name, spreads(frame, of, 1)) for group, all_ in groups.items() for name, of in all_.items()]
    return Heading("By length"), tabled([row_column(frame), *shown], ruled)


def departure_notes(frame: DataFrame) -> Text | Listing:
    """A line for each rule of the paper's recipe that the runs depart from."""
    lines = []
    for name, paper, here, everywhere in frame.attrs["departures"]:
        rows = {text: listed_rows(of) if len(of) <= NAMED else f"{len(of)} rows" for text, of in here.items()}
        done = "; ".join(text if everywhere else f"{text} ({of})" for text, of in rows.items())
        lines.append(f"{name}: {done}. Paper: {paper}.")
    return Listing(tuple(lines)) if lines else Text("None: every run follows it.")


def ending(frame: DataFrame, name: str, scale: str) -> Iterator[Block]:
    """The end of a table's page: departures, notes, how it was made, by the command of `name`, and made again."""
    yield Heading("Departures from the paper's recipe")
    yield departure_notes(frame)
    if frame.attrs["notes"]:
        yield Heading("Notes")
        yield Listing(tuple(frame.attrs["notes"]))
    yield Heading("How it was made")
    retired = "These runs were made by an earlier version, and no command of today makes them again; "
    made = (retired,) if scale in RETIRED else (Code(command_of(name, scale)), " leaves a record of each run; ")
    yield Text((*made, Code(COMMAND), f" made this page from {frame['n'].sum()} of them."))
    yield facts(frame)
    yield Heading("How reproducible these runs are")
    by_badge: dict[str, list[str]] = {}
    for line in frame.attrs["repeatable"]:
        badge, _, runs = line.partition(": ")
        by_badge.setdefault(badge, []).append(runs.removesuffix("."))
    yield Listing(tuple(f"{badge}: {'. '.join(runs)}." for badge, runs in by_badge.items()) or ("No run yet.",))
    yield columns.reading(own=frame.attrs["own"])


def facts(frame: DataFrame) -> Listing:
    """What all runs of a table share beside settings, which records have, and their cost on average and together."""
    facts = frame.attrs["shared"].items()
    shared = [(heading, f"{name} {value}".strip()) for (heading, name), value in facts if heading != "settings"]
    lines = [
        f"{heading}: {', '.join(text for _, text in group)}"
        for heading, group in itertools.groupby(shared, key=lambda item: item[0])
    ]
    n = frame["n"].astype(float)
    total = {name: float((frame[f"cost/{name}"] * n).sum()) for name in COSTS}
    each = {name: value / max(n.sum(), 1) for name, value in total.items()}
    cost = (
        f"{each['train_seconds']:,.0f} s training and {each['decode_seconds']:,.0f} s decoding per run, "
        f"{each['tokens_per_second']:,.0f} tokens per second, {100 * each['padding']:.1f} % padding; together "
        f"{(total['train_seconds'] + total['decode_seconds']) / 3600:,.1f} h, {total['flops']:.1e} FLOPs, "
        f"{total['gpu_hours']:,.1f} GPU hours"
    )
    return Listing((*lines, f"cost: {cost}"))


def further_section(frame: DataFrame, ruled: Iterable[int]) -> tuple[Block, ...]:
    """Scores on other test sets of the rows that have any, under a heading; empty where no run has."""
    counts = [name for name in frame.columns if name.startswith("further/") and name.endswith("/n")]
    if not counts:
        return ()
    shown = [row_column(frame)]
    for count in counts:
        of = count.removesuffix("/n")
        group, scored = of.removeprefix("further/"), frame.assign(n=frame[count].fillna(0).astype(int))
        shown.append(Column(group, "n", numbers(frame[count], ".0f")))
        for score, scorer in SCORERS.items():
            shown.append(Column(group, scorer, spreads(scored, f"{of}/{score}", 1, none="")))
    return Heading("Other test sets"), tabled(shown, ruled), Text(ABOUT_FURTHER)


# Sections of systems before the Transformer


def _thirds(frame: DataFrame, ruled: frozenset[int]) -> tuple[Block, ...]:
    """Scores by third of source length and of target position, under a heading; nothing where no run has them."""
    n, parts = len(LENGTHS), (*PLACES, "kept (%)")
    of_source = dict(zip(LENGTHS, THIRDS[:n], strict=True))
    of_target = dict(zip(parts, (*THIRDS[n:], KEPT), strict=True))
    groups = {"BLEU (dev) by third of source length": of_source, "BLEU (dev) by third of target position": of_target}
    shown = by_length(frame, groups, ruled)
    return (*shown, Text(ABOUT_PARTS)) if shown else ()


def _along_training(frame: DataFrame) -> tuple[Block, ...]:
    """Where the rows' curves of dev loss cross, under a heading; empty where none can be compared."""
    if "along/beside" not in frame.columns:
        return ()
    shown = [row_column(frame)]
    for over in OVERS:
        shown.append(Column(f"over {over}", "dev loss", columns.led(frame, over)))
        shown.append(Column(f"over {over}", "at the end", numbers(frame[f"along/{over}/gap"], "+.3f")))
    return Heading("Dev loss along the training"), tabled(shown), Text(ABOUT_CURVES)


# Table 2


def printed_columns() -> list[Column]:
    """The systems of the paper's Table 2."""

    shown = [Column("", "system", [line.name for line in TABLE_2])]
    shown += [Column("BLEU", pair, numbers((line.bleu.get(pair) for line in TABLE_2), "g")) for pair in PAIRS]
    for pair in PAIRS:
        computed = numbers((computed_flops(line, pair) for line in TABLE_2), ".1e")
        shown.append(Column(f"FLOPs {pair}", "printed", numbers((line.flops.get(pair) for line in TABLE_2), ".1e")))
        shown.append(Column(f"FLOPs {pair}", "worked out", computed))
    return shown


def columns_of_table_2(frame: DataFrame, judged: Sequence[Judged] = ()) -> list[Column]:
    """Our runs: test scores by both scorers beside the printed ones, the verdict, operations and time."""
    return [
        row_column(frame),
        Column("", "averaged", ["" if n is None else f"{n}" for n in frame["average"]]),
        columns.runs_column(frame),
        *columns.columns_of_test(frame),
        Column(columns.TEST, "paper", numbers(frame["paper/bleu"].mask(frame["table"] == BASE), ".1f")),
        *columns.verdict_columns(frame, judged),
        Column("training", "FLOPs", numbers(frame["cost/flops"], ".1e")),
        Column("training", "seconds", numbers(frame["cost/train_seconds"], ",.0f")),
        Column("training", "GPU hours", numbers(frame["cost/gpu_hours"], ",.1f")),
    ]


def _sections_of_table_2(frame: DataFrame, judged: Sequence[Judged]) -> Iterator[Block]:
    """Our runs, what their rows are, and the printed systems, ruled as in the paper."""
    base = frozenset({int((frame["table"] == BASE).sum())})
    yield Heading("Our runs")
    yield tabled([*columns_of_table_2(frame, judged), *columns.length_columns(frame)], base)
    yield Text(ABOUT_OURS)
    yield Heading("What our rows are")  # and how large, which the paper's Table 2 does not print
    yield tabled([row_column(frame), *columns.setting_columns(frame), *columns.size_columns(frame)[:2]], base)
    yield about_settings(frame)
    yield Heading("As printed, and the cost column worked out again")
    yield tabled(printed_columns(), columns.rules_between([line.kind for line in TABLE_2]))
    yield Text(ABOUT_PRINTED)


# Table 4: parsers


TABLE_4_NAME = "table4"
TEST_SCORES = {  # of test, as the columns are headed
    "f1": "all", "f1_short": "≤ 40 words", **{name: name for name in ("precision", "recall", "exact", "mended")}
}  # fmt: skip
PAPERS_TEXT = ["wsj"]  # the corpora of gold text of which the printed numbers are
ABOUT_TREES = "Trees are cleaned as is usual: no empty elements, no outer bracket, labels without functions."


def _gold(frame: DataFrame) -> list[str]:
    """The corpora of gold text, whether silver text was used as well or not."""
    return list(dict.fromkeys(name.removesuffix("_silver") for name in frame.attrs["corpora"]))


def _which_text(frame: DataFrame) -> Text:
    """On which text the numbers were measured, and what they may not be compared with."""
    if not (texts := "; ".join(TREEBANKS[name].about for name in _gold(frame) if name in TREEBANKS)):
        return Text("")
    compared = "It is the paper's own."
    if _gold(frame) != PAPERS_TEXT:
        compared = (
            "It is not the paper's: F1 on one text says nothing about F1 on another, so no number here can be compared "
            "with a printed one."
        )
    return Text(f"The text is {texts}. {compared}")


def _own_scores(frame: DataFrame) -> list[Column]:
    """Our runs: perplexity and F1 on dev, all scores on test, and what the paper prints for the same text."""
    shown = [
        row_column(frame),
        columns.runs_column(frame),
        Column("dev", "PPL", spreads(frame, "dev/ppl", 3)),
        Column("dev", "F1", spreads(frame, "dev/f1", 1)),
        *(Column("F1 (test)", head, spreads(frame, f"test/{name}", 1)) for name, head in TEST_SCORES.items()),
    ]
    if "paper/f1" in frame.columns and _gold(frame) == PAPERS_TEXT:
        shown.append(Column("F1 (test)", "paper", numbers(frame["paper/f1"], ".1f")))
    return shown


def _sections_of_parsers(frame: DataFrame, name: str) -> Iterator[Block]:
    """Our runs, their rows; for Table 4 also the printed parsers, ruled by training."""
    yield from (Text(TREEBANKS[of].attribution) for of in _gold(frame) if of in TREEBANKS)  # as licences ask
    yield Text(ABOUT_TREES)
    yield Heading("Our runs")
    yield tabled(_own_scores(frame))
    project = columns.to_project(own=frame.attrs["own"])
    yield Text((Link("What the numbers are", f"{project}/docs/parsing.md#the-page"), "."))
    yield from by_length(frame, {"F1 (dev) by third of sentence length": dict(zip(LENGTHS, F1_THIRDS, strict=True))})
    yield Heading("What our rows are")
    # not the size with 40,960 word-pieces, as translation has: for trees the paper uses 16,384 and 32,768
    sizes = columns.size_columns(frame)[:1]
    yield tabled([row_column(frame), *columns.setting_columns(frame), *sizes, *columns.cost_columns(frame)])
    yield about_settings(frame)
    if name == TABLE_4_NAME:
        trained_on = [line.training for line in TABLE_4]
        names, f1 = [line.name for line in TABLE_4], [f"{line.f1:.1f}" for line in TABLE_4]
        printed = Column("", "parser", names), Column("", "training", trained_on), Column("", "F1", f1)
        yield Heading("As printed")
        yield tabled(printed, columns.rules_between(trained_on))


# For a terminal


def at_the_end(frame: DataFrame, name: str = "") -> Page:
    """What an experiment prints at its end, in one table, however wide; one with columns of its own has a `name`."""
    notes = Listing(tuple(frame.attrs["notes"]))
    if name == TABLE_2_NAME:
        return Page("", blocks(Table(tuple(columns_of_table_2(frame))), notes))
    if name:
        return Page("", blocks(_which_text(frame), Table(tuple(_own_scores(frame))), notes))
    dev = [column for column in columns.columns_of_dev(frame) if column[:2] != ("PPL (dev)", DELTA)]
    return Page("", blocks(Table((row_column(frame), *dev)), by_chance(frame), notes))


def by_chance(frame: DataFrame) -> Text:
    """How much single runs of these rows differ between seeds, by the published runs, and what narrows that down.

    It stands below a table of one's own in which a row has one or two runs; from three on the interval shows it.
    Nothing where no row of the table is published with three or more runs.
    """
    if "published/n" not in frame or not frame["n"].between(1, columns.FEWEST - 1).any():
        return Text("")
    apart = frame["published/dev/bleu_max"] - frame["published/dev/bleu_min"]
    if (apart := apart[frame["published/n"] >= columns.FEWEST].dropna()).empty:
        return Text("")
    low, high = f"{apart.min():.1f}", f"{apart.max():.1f}"
    told = f"Single runs of these rows differ by {f'about {low}' if low == high else f'{low} to {high}'} BLEU by chance"
    return Text((f"{told}; ", Code(f"--seeds {FIRST_SEED}-{FIRST_SEED + SEEDS - 1}"), " narrows it."))
