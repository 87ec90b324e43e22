"""The sentences that several pages share: what a scale may show, departures from the paper, how a table was made."""

import itertools
from collections.abc import Iterable, Iterator, Mapping

from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.pages.columns import HEADINGS, NAMED, marked, row_column, spreads, tabled, unused
from repro.render.page import COMMAND, Block, Code, Column, Heading, Link, Listing, Text, Words
from repro.results.departures import Departure
from repro.results.frame import CONFIDENCE, COSTS, DataFrame
from repro.results.labels import AT_PAPER_SIZE, both, command_of, listed_rows
from repro.results.places import RETIRED
from repro.results.record import BASE

FEWEST = 3  # runs that a row needs for an interval
EXPLORED = "explored"  # the key in the `attrs` of a frame that says that no run of its scale is evidence
EXPLORATION = "Exploration: no run of this scale counts as evidence, so a table of it settles nothing."
ABOUT_SETTINGS = marked(
    "A row shows what it changes of the base. **(In brackets)** is the value at the paper's own size."
)


def to_project(*, own: bool) -> str:
    """The way from a page of a scale to the project's folder."""
    return "../../.." if own else "../.."


def reading(*, own: bool) -> Text:
    """The link to the meaning of all signs in tables."""
    return Text((Link("How to read the tables", f"{to_project(own=own)}/docs/usage.md#how-to-read-the-tables"), "."))


def opening(frame: DataFrame, lines: Listing) -> tuple[Block, ...]:
    """The beginning of a page: what was found, and what the scale may show. For exploration this comes first."""
    if frame.attrs.get(EXPLORED):
        return Text(EXPLORATION), lines
    may = frame.attrs["shared"].get(("settings", "claim"))
    return lines, Text(f"A table of this scale shows {may}." if may else "")


def by_chance(frame: DataFrame) -> tuple[Text, ...]:
    """How much single runs of these rows differ between seeds, by the published runs, and what narrows that down.

    It stands below a table of one's own in which a row has one or two runs; from three on the interval shows it.
    Nothing where no row of the table is published with three or more runs.
    """
    if "published/n" not in frame or not frame["n"].between(1, FEWEST - 1).any():
        return ()
    apart = (frame["published/dev/bleu_max"] - frame["published/dev/bleu_min"])[frame["published/n"] >= FEWEST].dropna()
    if apart.empty:
        return ()
    low, high = (f"{end:.0f}" if apart.min() >= 1 else f"{end:.1f}" for end in (apart.min(), apart.max()))
    told = f"{low} to {high}" if low != high else f"about {low}"
    again = Code(f"--seeds {FIRST_SEED}-{FIRST_SEED + SEEDS - 1}")
    signs = {
        "better": "better than the base beyond chance",
        "worse": "worse than the base beyond chance",
        "": "not told apart from the base by so few runs",
    }
    compared = told_apart(frame)
    named = {words: [row for (_, row), of in compared.items() if of == sign] for sign, words in signs.items()}
    said = (f"{', '.join(rows)}: {words}. " for words, rows in named.items() if rows)
    return (Text((*said, f"Single runs of these rows differ by {told} BLEU by chance; ", again, " narrows it.")),)


def told_apart(frame: DataFrame) -> dict[tuple[str, str], str]:
    """Which rows, by table and name, are "better" or "worse" than the base beyond chance by published spreads, or "".

    Rows with enough runs for an interval of their own are left out. A difference over n common seeds is beyond chance
    if it exceeds t sqrt((s^2 + s_base^2) / n), with s from the published seeds of each row, at 95 % for all rows of the
    table together (Bonferroni).
    """
    from scipy.special import stdtrit

    if "published/n" not in frame:
        return {}
    runs = frame["published/n"]
    deviation = frame["published/dev/bleu_half_width"] / stdtrit(runs - 1, (1 + CONFIDENCE) / 2) * runs**0.5
    whole = frame.copy()  # in one block: pandas warns of a column more where many were added one by one
    rows = whole.assign(variance=deviation**2)[(frame["n"] > 0) & (runs >= FEWEST)]
    lines = [row for _, row in rows.iterrows()]
    base = next((row for row in lines if row["row"] == BASE), None)
    if base is None:
        return {}
    common = [(row, len({*row["seeds"].split()} & {*base["seeds"].split()})) for row in lines if row is not base]
    compared = [(row, n) for row, n in common if 0 < n < FEWEST]  # rows with more have an interval of their own
    found = {}
    for row, n in compared:
        fewest = min(row["published/n"], base["published/n"])
        t = stdtrit(fewest - 1, 1 - (1 - CONFIDENCE) / 2 / len(compared))
        difference, bound = row["dev/bleu_to_base"], t * ((row["variance"] + base["variance"]) / n) ** 0.5
        found[row["table"], row["row"]] = "" if abs(difference) <= bound else "better" if difference > 0 else "worse"
    return found


def about_settings(frame: DataFrame) -> Text:
    """What the cells of the settings mean, and every setting of the base row if it was run."""
    if frame["table"].iloc[0] != BASE or not frame["n"].iloc[0]:
        return Text(ABOUT_SETTINGS)
    pairs = {
        name: (frame[name].iloc[0], frame[name + AT_PAPER_SIZE].iloc[0])
        for name in HEADINGS
        if name not in unused(frame)
    }
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
    if not frame["n"].sum() and not frame["diverged"].sum():
        return Text("No run to compare with it.")
    found: list[Departure] = frame.attrs["departures"]
    lines = []
    for name, paper, here, everywhere in found:
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
    made: Words = (Code(command_of(name, scale)), " leaves a record of each run; ")
    if scale in RETIRED:
        made = ("These runs were made by an earlier version, and no command of today makes them again; ",)
    yield Text((*made, Code(COMMAND), f" made this page from {frame['n'].sum()} of them."))
    yield facts(frame)
    yield Heading("How reproducible these runs are")
    by_badge: dict[str, list[str]] = {}
    for line in frame.attrs["repeatable"]:
        badge, _, runs = line.partition(": ")
        by_badge.setdefault(badge, []).append(runs.removesuffix("."))
    yield Listing(tuple(f"{badge}: {'. '.join(runs)}." for badge, runs in by_badge.items()) or ("No run yet.",))
    yield reading(own=frame.attrs["own"])


def facts(frame: DataFrame) -> Listing:
    """What all runs of a table share beside settings, which records have, and their cost on average and together."""
    shared = {key: value for key, value in frame.attrs["shared"].items() if key[0] != "settings"}
    said = {key: f"{key[1]} {value}".strip() for key, value in shared.items()}
    lines = [
        f"{heading}: {', '.join(text for _, text in group)}"
        for heading, group in itertools.groupby(said.items(), key=lambda item: item[0][0])
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
