"""The sentences that several pages share: what signs mean, departures from the paper, notes about a table."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.pages.columns import ABOUT_FOUND, DELTA, EXPLORATORY, HEADINGS, MEAN_OF_LAST, MISSING, SIZE, marked, unused
from repro.render.page import Block, Code, Column, Heading, Link, Listing, Page, Strong, Table, Text, Words, plain
from repro.results.departures import Departure
from repro.results.frame import CONFIDENCE, COSTS, DataFrame, Series
from repro.results.labels import AT_PAPER_SIZE, both, listed_rows
from repro.results.notes import NO_COMMIT, NOT_COMMITTED
from repro.results.record import BASE
from repro.results.task import LENGTH

FEWEST = 3  # runs that a row needs for an interval
NOT_TOLD_APART = "not told apart from the base by so few runs"
ABOUT_LABELS = marked("**(here ...)** follows a row's name where the value that it names is different at this scale.")
ABOUT_SPREADS = marked(
    "**a ± b** is the mean over n seeds and the half-width of its 95 % t-interval; two seeds, or an interval that "
    "would reach below zero, give the mean [lowest, highest], one seed gives its number."
)
ABOUT_LAST_MEAN = marked(
    f"**{MEAN_OF_LAST}** is the same run by the mean of its last checkpoints, as far apart as those that Table 2 "
    f"averages, and not by the paper's weights; **{LENGTH}** is the tokens of its translations over those of their "
    "references. Label smoothing favours short ones, and BLEU multiplies by exp(1 - 1 / length) below 1."
)
ABOUT_MULTI_BLEU = marked("**multi-bleu** is BLEU as the paper's authors computed it: Moses tokens, compounds split.")
ABOUT_OWN = marked(
    "**yours** is what was run here, over n seeds; **published** is what the repository has under results/, over seeds "
    "of its own: its page says how many."
)
ABOUT_MARKS: Words = (
    Strong(NOT_COMMITTED),
    " and ",
    Strong(NO_COMMIT),
    " mark rows that nobody else has; the notes say why.",
)
ABOUT_EXPLORATORY = marked(
    f"**{EXPLORATORY}** runs are in means, intervals and differences, but in no verdict: ",
    Link("claims", "claims", to_page=True),
    " has the numbers without them.",
)
ABOUT_VERDICT = marked(
    "**verdict** is the outcome of the ",
    Link("claims", "claims", to_page=True),
    " that compare the row with the base, and may rest on one score alone; blank where no claim does.",
)
ABOUT_STATEMENTS = marked(
    "**statements** are those of teaching texts about the row: what came of them. ",
    Link("statements.md", "statements", to_page=True),
    " has each with its numbers.",
)
ABOUT_SETTINGS = marked(
    "A row shows what it changes of the base. **(In brackets)** is the value at the paper's own size."
)
ABOUT_SIZE_HERE = marked("**Parameters** in millions: of the model that was trained **here**")
ABOUT_SIZE = marked(*ABOUT_SIZE_HERE, "; of the same row **at paper size**, with 40,960 word-pieces.")
ABOUT_PRINTED_SIZE = marked("Parameters of the **paper**: as printed in Table 3.")
MADE_AGAIN = "How reproducible these runs are"
ABOUT_LENGTHS = marked(
    "**empty** are translations without a token, in per cent of dev; **length** is the tokens of all over those of "
    "their references: where it is below 1, BLEU is multiplied by exp(1 - 1 / length)."
)
ABOUT_DECIDES = marked("A difference of lengths **decides** where BLEU without that factor has the other sign.")


EXPLORED = "explored"  # the key in the `attrs` of a frame that says that no run of its scale is evidence


def _in_cells(sign: str) -> Callable[[Sequence[Column]], bool]:
    return lambda shown: any(sign in plain(text) for column in shown for text in column.texts)


def _has(heading: str) -> Callable[[Sequence[Column]], bool]:
    return lambda shown: any(heading in (column.group, column.heading) for column in shown)


def _shows_dev(*who: str) -> Callable[[Sequence[Column]], bool]:
    """A test whether one of these has a column of dev scores."""
    return lambda shown: any(column.group == "PPL (dev)" and column.heading in who for column in shown)


SIGNS: tuple[tuple[Callable[[Sequence[Column]], bool], Words], ...] = (  # whether a sign occurs, and its explanation
    (_in_cells("(here "), ABOUT_LABELS),
    (_has("yours"), ABOUT_OWN),
    (lambda shown: _in_cells("±")(shown) or _in_cells(" [")(shown), ABOUT_SPREADS),
    (_shows_dev("ours", "yours"), "PPL is per word-piece and unsmoothed, BLEU is sacreBLEU's."),
    (_shows_dev("paper"), marked("**paper**: as printed, for newstest2013.")),
    (_has(DELTA), marked("**Δ** is the difference to the base row, of our scores over the seeds that both rows have.")),
    (lambda shown: any(column.group.startswith(MEAN_OF_LAST) for column in shown), ABOUT_LAST_MEAN),
    (_has("multi-bleu"), ABOUT_MULTI_BLEU),
    (_has("verdict"), ABOUT_VERDICT),
    (_has("statements"), ABOUT_STATEMENTS),
    (_has("empty (%)"), ABOUT_LENGTHS),
    (_in_cells(", decides"), ABOUT_DECIDES),
    (_has("at paper size"), ABOUT_SIZE),
    (lambda shown: _has(SIZE)(shown) and not _has("at paper size")(shown), (*ABOUT_SIZE_HERE, ".")),
    (lambda shown: any(column[:2] == (SIZE, "paper") for column in shown), ABOUT_PRINTED_SIZE),
    (lambda shown: any(_marks(text) for text in shown[0].texts), ABOUT_MARKS),
    (_has("seconds a run"), marked(f"Seconds compare between runs of one processor: see **{MADE_AGAIN}**.")),
    (_has("rate factor"), marked("**rate factor** multiplies the learning rate of section 5.3.")),
    (_in_cells(MISSING), marked(f"**{MISSING}** is a row without a finished run.")),
    (_in_cells(f" {EXPLORATORY}"), ABOUT_EXPLORATORY),
    (_in_cells("diverged)"), marked("**diverged** runs are counted, but enter no mean.")),
)


ALL_SIGNS = frozenset(Text(words) for _, words in SIGNS) | {Text(ABOUT_FOUND)}


READING = Heading("How to read the tables")
SEE_README: Words = (Link("How to read the tables", "README", to_page=True), ".")


def explained_table(shown: Sequence[Column], ruled: Iterable[int] = ()) -> tuple[Table | Text, ...]:
    """A table, followed by a sentence for each sign that occurs in it."""
    return (Table(tuple(shown), frozenset(ruled)), *explained(shown))


def told_at_the_end(parts: Iterable[Block], others: Iterable[Page] = ()) -> tuple[Block, ...]:
    """The blocks of a page, then the explanations of the signs in its tables and those of `others`, each once."""
    parts = tuple(parts)
    signs = dict.fromkeys(part for part in parts if isinstance(part, Text) and part in ALL_SIGNS)
    kept = tuple(part for part in parts if not isinstance(part, Text) or part not in signs)
    told: dict[Words, None] = dict.fromkeys(
        [*(sign.words for sign in signs), *(sign for page in others for sign in _signs(page))]
    )
    if ABOUT_SIZE in told:
        told.pop((*ABOUT_SIZE_HERE, "."), None)  # the shorter sentence, for tables without the size of the paper
    return (*kept, READING, Listing(tuple(told))) if told else kept


def _signs(page: Page) -> tuple[Words, ...]:
    """The explanations of signs at the end of a page; none if it has no such list."""
    match page.blocks[-2:]:
        case (heading, Listing(items)) if heading == READING:
            return items
    return ()


def linked(page: Page) -> Page:
    """The page with its explanations of signs replaced by a link to those on the page of the scale."""
    return replace(page, blocks=(*page.blocks[:-2], Text(SEE_README))) if _signs(page) else page


def explained(shown: Sequence[Column]) -> tuple[Text, ...]:
    """The text under a table: a sentence for each sign that occurs in it."""
    return tuple(Text(words) for occurs, words in SIGNS if occurs(shown))


def _marks(name: Words) -> bool:
    return plain(name).endswith((f" {NOT_COMMITTED}", NO_COMMIT))


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
    spread = f"Single runs of these rows differ by {told} BLEU by chance; "
    told_of = told_apart(frame)
    named = {sign: [row for (_, row), of in told_of.items() if of == sign] for sign in ("better", "worse", "")}
    said = [
        f"{', '.join(rows)}: {f'{sign} than the base beyond chance' if sign else NOT_TOLD_APART}. "
        for sign, rows in named.items()
        if rows
    ]
    return (Text((*said, spread, again, " narrows it.")),)


def told_apart(frame: DataFrame) -> dict[tuple[str, str], str]:
    """Which rows are "better" or "worse" than the base beyond chance, by the published spreads; "" for neither.

    Rows with enough runs for an interval of their own are left out. A difference over n common seeds is beyond chance
    if it exceeds t sqrt((s^2 + s_base^2) / n), with s from the published seeds of each row, at 95 % for all rows of the
    table together (Bonferroni).
    """
    from scipy.special import stdtrit

    def variance(row: Series) -> float:
        n = row["published/n"]
        return float((row["published/dev/bleu_half_width"] / stdtrit(n - 1, (1 + CONFIDENCE) / 2)) ** 2 * n)

    if "published/n" not in frame:
        return {}
    lines = [row for _, row in frame[(frame["n"] > 0) & (frame["published/n"] >= FEWEST)].iterrows()]
    base = next((row for row in lines if row["row"] == BASE), None)
    if base is None:
        return {}
    common = [(row, len({*row["seeds"].split()} & {*base["seeds"].split()})) for row in lines if row is not base]
    compared = [(row, n) for row, n in common if 0 < n < FEWEST]  # rows with more have an interval of their own
    found = {}
    for row, n in compared:
        fewest = min(row["published/n"], base["published/n"])
        t = stdtrit(fewest - 1, 1 - (1 - CONFIDENCE) / 2 / len(compared))
        difference, bound = row["dev/bleu_to_base"], t * ((variance(row) + variance(base)) / n) ** 0.5
        found[row["table"], row["row"]] = "" if abs(difference) <= bound else "better" if difference > 0 else "worse"
    return found


def claim(frame: DataFrame) -> Words:
    """What a table of this scale shows; for exploration only that it is; nothing where its records disagree."""
    if frame.attrs.get(EXPLORED):
        return "Exploration: no run of this scale counts as evidence, so a table of it settles nothing."
    may = frame.attrs["shared"].get(("settings", "claim"))
    return f"A table of this scale shows {may}." if may else ""


def opening(frame: DataFrame, lines: Listing) -> tuple[Block, ...]:
    """The beginning of a page: what was found. For exploration, first the sentence that it settles nothing."""
    may = Text(claim(frame))
    return (may, lines) if frame.attrs.get(EXPLORED) else (lines, may)


def base_in_full(frame: DataFrame) -> Words:
    """Every setting of the base row; nothing where it was not run."""
    if frame["table"].iloc[0] != BASE or not frame["n"].iloc[0]:
        return ()
    pairs = {
        name: (frame[name].iloc[0], frame[name + AT_PAPER_SIZE].iloc[0])
        for name in HEADINGS
        if name not in unused(frame)
    }
    said = [(", ", HEADINGS[name], f" {both(*pair, name)}") for name, pair in pairs.items() if pair[0] is not None]
    return (" Base row: ", *[*itertools.chain.from_iterable(said)][1:], ".")


def about_settings(frame: DataFrame, whole: str = "") -> Text:
    """What the cells of the settings mean, and all settings of the base row, which a part leaves to the `whole`."""
    return Text(ABOUT_SETTINGS if whole else (*ABOUT_SETTINGS, *base_in_full(frame)))


def departure_notes(frame: DataFrame) -> Text | Listing:
    """A line for each rule of the paper's recipe that the runs depart from."""
    lines = []
    found: list[Departure] = frame.attrs["departures"]
    for name, paper, here, everywhere in found:
        done = "; ".join(text if everywhere else f"{text} ({listed_rows(rows)})" for text, rows in here.items())
        lines.append(f"{name}: {done}. Paper: {paper}.")
    if not frame["n"].sum() and not frame["diverged"].sum():
        return Text("No run to compare with it.")
    return Listing(tuple(lines)) if lines else Text("None: every run follows it.")


def notes(frame: DataFrame, heading: Heading | Text) -> tuple[Heading | Text | Listing, ...]:
    """What a reader must know about a table, under a heading; nothing where there is nothing."""
    return (heading, Listing(tuple(frame.attrs["notes"]))) if frame.attrs["notes"] else ()


def made_again(frame: DataFrame) -> Text | Listing:
    """A line for each badge that the runs of a table earned, and each processor."""
    lines: list[str] = frame.attrs["repeatable"]
    return Listing(tuple(lines)) if lines else Text("No run yet.")


def ending(frame: DataFrame, *made: Block, whole: str = "") -> Iterator[Block]:
    """The end of a table's page: departures, notes, how it was made (if `made` is given), how reproducible it is.

    The page of a part says only how it was made; the rest stands on the page of the `whole`.
    """
    if whole:
        yield Heading("How it was made")
        yield from made
        yield Text(
            ("Departures from the paper's recipe, notes, and ", Link(MADE_AGAIN.lower(), whole, to_page=True), ".")
        )
        return
    yield Heading("Departures from the paper's recipe")
    yield departure_notes(frame)
    yield from notes(frame, Heading("Notes"))
    if made:
        yield Heading("How it was made")
        yield from made
    yield Heading(MADE_AGAIN)
    yield made_again(frame)


def facts(frame: DataFrame) -> Listing:
    """What all runs of a table share, and what they cost."""
    shared = {key: value for key, value in frame.attrs["shared"].items() if key != ("settings", "claim")}
    said = {key: f"{key[1]} {value}".strip() for key, value in shared.items()}
    lines = [
        f"{heading}: {', '.join(text for _, text in group)}"
        for heading, group in itertools.groupby(said.items(), key=lambda item: item[0][0])
    ]
    return Listing((*lines, f"cost: {cost(frame)}"))


def cost(frame: DataFrame) -> str:
    """The cost of one run on average, and of all runs together."""
    n = frame["n"].astype(float)
    total = {name: float((frame[f"cost/{name}"] * n).sum()) for name in COSTS}
    each = {name: value / max(n.sum(), 1) for name, value in total.items()}
    return (
        f"{each['train_seconds']:,.0f} s training and {each['decode_seconds']:,.0f} s decoding per run, "
        f"{each['tokens_per_second']:,.0f} tokens per second, {100 * each['padding']:.1f} % padding; together "
        f"{(total['train_seconds'] + total['decode_seconds']) / 3600:,.1f} h, {total['flops']:.1e} FLOPs, "
        f"{total['gpu_hours']:,.1f} GPU hours"
    )
