"""The columns of a frame as tables show them, in a reader's words, and what was found. Paper: Tables 2 and 3."""

import itertools
import math
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any

from repro.claims.catalogue import B0, BASE_DE, BASE_FR
from repro.claims.evidence import Apart, Evidence, why_apart
from repro.claims.judge import Judged
from repro.model.config import BASE as PAPER_BASE
from repro.model.config import LATER
from repro.render.page import Block, Column, Formula, Inline, Link, Listing, Strong, Table, Text, Words, joined, plain
from repro.render.text import sheet_text
from repro.results.details import DECIDES, EMPTY, RATIO, RATIO_TO_BASE, Over
from repro.results.frame import BESIDE, N_BY_MEAN, DataFrame, Series, half_shown
from repro.results.labels import AT_PAPER_SIZE, SYMBOLS, both, label, listed_rows, setting, system_label
from repro.results.record import BASE, LENGTH

TABLE_3 = "table3"  # all of Table 3 on one page: base, the groups (A) to (E), big
PARTS = "table3_"  # the prefix of its experiment files
EXPLORED = "explored"  # the key in the `attrs` of a frame that says that no run of its scale is evidence
MINUS = "\N{MINUS SIGN}"
MISSING = "missing"
EXPLORATORY = "exploratory"
SIZE = "parameters (M)"
TEST = "BLEU (test)"
OF_TRANSLATIONS = "translations (dev)"
MEAN_OF_LAST = "mean of last"  # the prefix of the group of columns for other weights than the paper's
DELTA = Formula("Δ")
HEADINGS = {  # for the fields of Hyper: those that the paper writes as symbols are formulas
    name: Formula(symbol) if len(symbol) == 1 or "_" in symbol else symbol for name, symbol in SYMBOLS.items()
}


def has_part(table: str) -> bool:
    """Whether an experiment's rows belong to Table 3: those of the base and of its parts do."""
    return table == BASE or table.startswith(PARTS)


def to_project(*, own: bool) -> str:
    """The way from a page of a scale to the project's folder."""
    return "../../.." if own else "../.."


def reading(*, own: bool) -> Text:
    """The link to the meaning of all signs in tables."""
    return Text((Link("How to read the tables", f"{to_project(own=own)}/docs/usage.md#how-to-read-the-tables"), "."))


def marked(text: str) -> tuple[Inline, ...]:
    """Text with **such parts** made strong."""
    return tuple(Strong(one) if i % 2 else one for i, one in enumerate(text.split("**")) if one)


def tabled(columns: Iterable[Column], ruled: Iterable[int] = ()) -> Table:
    """The columns as a table; the first has the names of the rows.

    A row that has nothing to show, such as one that was not run, is left out, and so is an empty column. What is equal
    in all rows stands below the table, once.
    """
    names, *others = shown = [*columns]
    kept = [i for i in range(len(names.texts)) if any(plain(of.texts[i]) not in ("", "0", MISSING) for of in others)]
    rules = frozenset(sum(i < rule for i in kept) for rule in ruled) - {0, len(kept)}
    of_rows = [column._replace(texts=[column.texts[i] for i in kept]) for column in shown]
    alike = {i for i, column in enumerate(of_rows) if i and len(kept) > 2 and len({*map(plain, column.texts)}) == 1}
    by_group = itertools.groupby((of_rows[i] for i in sorted(alike)), key=lambda column: column.group)
    said = [(group, [(of.heading, of.texts[0]) for of in run if plain(of.texts[0])]) for group, run in by_group]
    told = [joined([group, joined([joined(one) for one in values], ", ")]) for group, values in said if values]
    left = tuple(column for i, column in enumerate(of_rows) if i not in alike)
    return Table(left, rules, ("In all rows: ", *joined(told, "; "), ".") if told else "")


def runs_column(frame: DataFrame, none: str = MISSING) -> Column:
    """How many runs of a row finished, with remarks on them and on diverged ones; `none` for a row not run."""
    apart = frame.attrs.get("apart", [0] * len(frame))
    texts = []
    for n, diverged, explored in zip(frame["n"], frame["diverged"], apart, strict=True):
        said = [f"{count} {what}" for count, what in ((explored, EXPLORATORY), (diverged, "diverged")) if count]
        texts.append(f"{n} ({', '.join(said)})" if said else f"{n}" if n else none)
    return Column("", Formula("n"), texts)


def _is_base(frame: DataFrame) -> "Series[bool]":
    """Which rows are the base, or the same model trained on other text."""
    likes = [i for i, place in enumerate(frame.attrs["bases"]) if place == i]
    return frame["table"].eq(BASE) | frame.index.to_series().isin(likes)


def columns_of_dev(frame: DataFrame) -> list[Column]:
    """Scores on the development set and differences to the base, ours beside the paper's."""
    others, shown = ~_is_base(frame), [runs_column(frame, none="0")]
    for name, decimals in (("ppl", 2), ("bleu", 1)):
        group, score = f"{name.upper()} (dev)", f"dev/{name}"
        shown += _to_base(frame, group, "yours" if frame.attrs["own"] else "ours", score, decimals)
        shown += published_column(frame, group, score, decimals)
        if frame.loc[others, f"paper/{name}"].notna().any():
            less = frame[f"paper/{name}_to_base"].where(others)
            shown.append(Column(group, "paper", numbers(frame[f"paper/{name}"], f".{decimals}f")))
            shown.append(Column(group, DELTA, numbers(less, f"+z.{decimals}f")))
    return shown


def length_columns(frame: DataFrame) -> list[Column]:
    """Share of empty translations, length, and its difference to the base if any; none where no row has counts."""
    if RATIO not in frame:
        return []
    of_row = {"empty (%)": spreads(frame, EMPTY, 1), "length": spreads(frame, RATIO, 3), DELTA: _lengths_to_base(frame)}
    return [Column(OF_TRANSLATIONS, name, texts) for name, texts in of_row.items() if name != DELTA or any(texts)]


def _lengths_to_base(frame: DataFrame) -> list[str]:
    """How much longer each row's translations are than the base's, and where that decides about BLEU; else nothing."""
    if RATIO_TO_BASE not in frame:
        return [""] * len(frame)
    texts = numbers(frame[RATIO_TO_BASE], "+z.3f")
    return [f"{text}, decides" if is_so == 1 else text for text, is_so in zip(texts, frame[DECIDES], strict=True)]


def columns_of_last_mean(frame: DataFrame) -> list[Column]:
    """The same by the mean of each run's last checkpoints, with lengths; none where no row but the base has it."""
    if not (counts := frame.attrs["averaged"]) or not frame[N_BY_MEAN][~_is_base(frame)].any():
        return []
    group = f"{MEAN_OF_LAST} {counts[0]}{f' to {counts[-1]}' if len(counts) > 1 else ''} (dev)"
    scores = (("PPL", "ppl", 2), ("BLEU", "bleu", 1), (LENGTH, LENGTH, 3))
    shown = [(heading, f"last_mean_dev/{name}", decimals) for heading, name, decimals in scores]
    n, known = frame["n"].astype(float), frame[N_BY_MEAN].where(frame[N_BY_MEAN] > 0)
    of_n = [Column(group, Formula("n"), numbers(known, ".0f"))] if (known < n).any() else []
    scored = frame.assign(n=known.fillna(n))
    return [*of_n, *(column for of in shown if of[1] in frame for column in _to_base(scored, group, *of))]


def _to_base(frame: DataFrame, group: str, heading: str, score: str, decimals: int) -> list[Column]:
    """A score, and how far the rows are from the base where any is compared with it."""
    to_base = numbers(frame[f"{score}_to_base"].mask(_is_base(frame)), f"+z.{decimals}f")
    of_rows = Column(group, heading, spreads(frame, score, decimals))
    return [of_rows, Column(group, DELTA, to_base)] if any(to_base) else [of_rows]


def columns_of_test(frame: DataFrame) -> list[Column]:
    """Scores on the test set, by both scorers."""
    return [
        Column(TEST, "sacreBLEU", spreads(frame, "test/bleu", 1)),
        *published_column(frame, TEST, "test/bleu", 1),
        Column(TEST, "multi-bleu", spreads(frame, "test/bleu_published", 1)),
    ]


def row_column(frame: DataFrame) -> Column:
    """The names of the rows, with the marks of those that nobody else has."""
    names = zip(labels(frame), frame.attrs["marks"], strict=True)
    return Column("", "row", [f"{name} {mark}".rstrip() for name, mark in names])


def published_column(frame: DataFrame, group: str, score: str, decimals: int) -> list[Column]:
    """The published values of a score, in a table of one's own; no column where nothing is published."""
    if "published/n" not in frame:
        return []
    beside = frame[[f"published/{name}" for name in BESIDE]].set_axis(BESIDE, axis="columns")
    return [Column(group, "published", spreads(beside, score, decimals, none=""))]


def setting_columns(frame: DataFrame) -> list[Column]:
    """The settings of rows, as in the paper: the base in full, other rows only where they differ from it."""
    has_base = frame["table"].iloc[0] == BASE
    systems = [system_label(text) if n else "" for n, text in zip(frame["n"], frame["system"], strict=True)]
    shown = [Column("", "system", systems)] if has_systems(frame) else []
    for name, heading in HEADINGS.items():
        here, paper = list(frame[name]), list(frame[name + AT_PAPER_SIZE])
        if len({setting(value, name) for value in here} - {""}) > 1:
            texts = [both(*pair, name) for pair in zip(here, paper, strict=True)]
            kept = [i == 0 or not has_base or value != here[0] for i, value in enumerate(here)]
            shown.append(Column("", heading, [text if keep else "" for text, keep in zip(texts, kept, strict=True)]))
    return shown


def size_columns(frame: DataFrame) -> list[Column]:
    """Numbers of parameters: of the trained model, at the paper's size, and as printed."""
    return [
        Column(SIZE, "here", numbers(frame["params/here"] / 1e6, ".2f")),
        Column(SIZE, "at paper size", numbers(frame["params/paper_size"] / 1e6, ".1f")),
        Column(SIZE, "paper", numbers(frame["paper/params"], ".0f")),
    ]


def operations_columns(frame: DataFrame) -> list[Column]:
    """Operations of a run's training, also in per cent of the base's."""
    flops = frame["cost/flops"]
    share = 100 * flops / flops.where(frame["table"] == BASE).max()
    return [
        Column("training", "FLOPs", numbers(flops, ".2e")),
        Column("training", "FLOPs, % of base", numbers(share, ".0f")),
    ]


def led(frame: DataFrame, over: Over) -> list[str]:
    """On which side of the dev loss beside it that of each row ends, and from where on; empty without one beside it."""
    names = ("along/beside", f"along/{over}/crossings", f"along/{over}/gap")
    return [
        f"{'above' if gap > 0 else 'below'} {beside} "
        + ("throughout" if places == "nowhere" else f"from {places.rpartition(', ')[2]} on")
        if isinstance(beside, str) and isinstance(places, str)
        else ""
        for beside, places, gap in frame.reindex(columns=names).to_numpy()
    ]


def cost_columns(frame: DataFrame) -> list[Column]:
    """How long a run took."""
    of = {"training": frame["cost/train_seconds"], "decoding": frame["cost/decode_seconds"]}
    return [Column("seconds a run", what, numbers(seconds, ",.0f")) for what, seconds in of.items()]


def labels(frame: DataFrame) -> list[str]:
    """The names of a table's rows."""
    settings = [dict(zip(SYMBOLS, values, strict=True)) for values in frame[[*SYMBOLS]].to_numpy()]
    return [label(row, here) for row, here in zip(frame["row"], settings, strict=True)]


def numbers(values: Iterable[float | None], form: str) -> list[str]:
    """Numbers as text, 1.2e17 for 1.2e+17, empty for None."""
    return [
        "" if x is None or math.isnan(x) else format(x, form).replace("-", MINUS).replace("e+", "e") for x in values
    ]


def with_minus(sentence: str) -> str:
    """A sentence with minus signs as in tables: "between −1.84 and 0.2"; hyphens in words and ranges stay."""
    return re.sub(r"(?<![\w.-])-(?=\d)", MINUS, sentence)


def spreads(frame: DataFrame, score: str, decimals: int, none: str = MISSING) -> list[str]:
    """Mean ± half-width; for one run its number; empty where no run has the score, `none` for a row not run.

    Mean [lowest, highest] for two runs, and where the interval would reach below zero, as no score can.
    """
    form = f".{decimals}f"
    shown = [*map(half_shown, frame[score], frame[score + "_half_width"])]  # decided before rounding
    parts = [numbers(frame[score + end], form) for end in ("", "_min", "_max")]
    texts = []
    for n, half_width, mean, low, high in zip(frame["n"], numbers(shown, form), *parts, strict=True):
        if half_width:
            mean += f" ± {half_width}"
        elif n > 1 and mean:
            mean += f" [{low}, {high}]"
        texts.append(mean if n else none)
    return texts


def rules_between(values: Sequence[object]) -> frozenset[int]:
    """The lines of a table with a rule above: those whose value differs from the line before."""
    return frozenset(i for i in range(1, len(values)) if values[i] != values[i - 1])


def unused(frame: DataFrame) -> list[str]:
    """The fields to hide: those that are not columns of the paper and that no row of this table sets."""
    return [name for name in LATER if {*frame[name].dropna()} <= {getattr(PAPER_BASE, name)}]


def has_systems(frame: DataFrame) -> bool:
    """Whether any row trained another system than the Transformer."""
    return bool(frame["system"].notna().any())


VERDICT = "verdict"
BASES = {B0, BASE_DE, BASE_FR}  # rows that others are compared with, each in its own language pair


def verdict_columns(frame: DataFrame, judged: Iterable[Judged]) -> list[Column]:
    """The verdicts on claims and statements that compare a row with the base; no column where none was judged.

    Where the verdicts of a row differ, each is shown with the scores that it is about.
    """
    said: dict[str, list[Judged]] = {}
    for one in judged:
        others = {*one.claim.rows} - BASES
        if one.claim.kind in ("direction", "equivalence") and len(others) == 1:
            said.setdefault(others.pop(), []).append(one)
    rows = zip(frame["table"], frame["row"], strict=True)
    texts = [_joined(said.get(f"{table}/{row}", ())) for table, row in rows]
    return [Column("", VERDICT, texts, is_words=True)] if {*texts} - {"", "not judged"} else []


def tell_exploration(frame: DataFrame, evidence: Evidence) -> None:
    """Store in a frame how many runs of each row settle nothing, and which ones in its notes.

    This is left out if no run of the scale settles anything: then no verdict could be mistaken for one of these means.
    """
    by_run = {(record.table, record.row, record.seed): Apart(record, why) for record, why in evidence.apart}
    rows = zip(frame["table"], frame["row"], frame["seeds"], strict=True)
    runs = [[by_run.get((table, row, int(seed))) for seed in seeds.split()] for table, row, seeds in rows]
    apart = [[run for run in of if run] for of in runs]
    if evidence.records and any(apart):
        frame.attrs["apart"] = [len(of) for of in apart]
        lines = why_apart([run for of in apart for run in of])
        frame.attrs["notes"] += [f"Exploratory, in means and in no verdict: {line}." for line in lines]


def _joined(about: Collection[Judged]) -> str:
    """Verdicts in one cell; "not judged" is shown only where there is no other: most such claims are about sizes."""
    told = [one for one in about if one.verdict != "not judged"] or about
    scores: dict[str, list[str]] = {}
    for one in told:
        scores.setdefault(one.verdict, []).extend(found.endpoint.name for found in one.found)
    if len(scores) < 2:
        return ", ".join(scores)
    return ", ".join(f"{word} ({', '.join(dict.fromkeys(of))})" if of else word for word, of in scores.items())


# Comma-separated values that a spreadsheet reads as values, never as formulas

SHEET_DIGITS = 9  # other processors sum in another order, which changes the last of 17 digits


def sheet(frame: DataFrame) -> str:
    """A frame as comma-separated values, with every column that some row sets."""
    frame = frame.drop(columns=[name + size for name in unused(frame) for size in ("", AT_PAPER_SIZE)])
    return _separated(frame if has_systems(frame) else frame.drop(columns="system"))


def comma_separated(lines: Iterable[Mapping[str, Any]]) -> str:
    """A line for each mapping, under all of their names in order of first occurrence; a name has one type, or None."""
    import pandas as pd

    return _separated(pd.DataFrame([*lines]))


def _separated(frame: DataFrame) -> str:
    texts = [name for name in frame if frame[name].map(lambda value: isinstance(value, str)).any()]
    safe = {str(name): [sheet_text(of) if isinstance(of, str) else of for of in frame[name]] for name in texts}
    return str(frame.assign(**safe).to_csv(index=False, float_format=f"%.{SHEET_DIGITS}g", lineterminator="\n"))


# The beginning of a page: findings in sentences, made from its records

NAMED = 6  # rows that are named with their numbers; of further rows only the count is given


def found(frame: DataFrame, rows: Container[str] | None = None) -> Listing:
    """Which of these rows, or of all, are better than the base, worse, and undecided; empty without a base.

    Each line begins with the largest difference: soft alignment +16.6 ± 2.0 (length +0.051), ConvS2S +6.8 ± 1.4, ...
    """
    better, worse = "Better than the base", "Worse than the base"
    near, few = "Not told apart from the base", "Too few seeds to tell"
    groups: dict[str, list[tuple[float, str]]] = {side: [] for side in (better, worse, near, few)}
    names, printed, lengths = labels(frame), numbers(frame["paper/bleu_to_base"], "+z.1f"), _lengths_to_base(frame)
    lines = zip(frame["row"], names, frame.attrs["bleu_to_base"], printed, lengths, strict=True)
    for row, name, difference, paper, length in lines:
        if difference is None or (rows is not None and row not in rows):
            continue
        mean, half = difference
        said = f"{listed_rows([name])} {numbers([mean], '+z.1f')[0]}" + (f" ± {half:.1f}" if half is not None else "")
        beside = [f"{what} {of}" for what, of in (("paper", paper), ("length", length)) if of]
        said += f" ({'; '.join(beside)})" * bool(beside)
        side = few if half is None else near if abs(mean) <= half else better if mean > 0 else worse
        groups[side].append((-abs(mean), said))
    told = {side: [said for _, said in sorted(rows, key=lambda row: row[0])] for side, rows in groups.items() if rows}
    return Listing(tuple((Strong(side), f", in BLEU on dev: {counted(rows)}.") for side, rows in told.items()))


def counted(said: Sequence[str]) -> str:
    """The first `NAMED` of them, and how many more there are."""
    more = f", and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return f"{', '.join(said[:NAMED])}{more}"


def scored(frame: DataFrame, score: str, name: str) -> Listing:
    """The scores of the rows in order, for a table whose rows are not compared with the base."""
    texts = zip(labels(frame), spreads(frame, score, 1, none=""), strict=True)
    told = [f"{listed_rows([row])} {text}" for row, text in texts if text]
    return Listing(((Strong(name), f": {counted(told)}."),) if told else ())


# The anchor: scores that the authors of its recipe published


ANCHOR, RECIPE, CORPUS = "anchor", "tiny", "multi30k_tok"
PUBLISHED = {  # the prefix of our columns -> the test set, and BLEU of one model on it
    "test": ("test_2016_flickr", 41.02),
    "further/test_2017_flickr": ("test_2017_flickr", 33.36),
}
OF_TEST = "test/n-grams"  # the prefix of the columns below; no score of a task has this name
# the components of BLEU in per cent, with those of the published model on test; its length follows from its brevity
NGRAMS = {"1-grams": 71.0, "2-grams": 47.5, "3-grams": 34.3, "4-grams": 24.5, "brevity": 99.9}
NGRAMS["length"] = 100 / (1 - math.log(NGRAMS["brevity"] / 100))  # brevity is exp(1 - 1 / length)
FEWEST = 3  # runs that a row needs for an interval
ABOUT_ANCHOR = (
    "Published is the text-only Transformer-tiny of Wu et al. (2021) on the same lower-cased text, in BLEU of tokens; "
    "ours is sacreBLEU, of tokens of its own. docs/deviations.md says what their recipe does and ours does not. "
    "Theirs is one model, so the outcome is whether it lies where one more run of ours would: at 95 % the mean ± t s "
    "√(1 + 1/n), over three runs or more. So it is asked since 28 November 2026, when most of the runs were known; "
    "before, whether it lies in the interval of the mean. BLEU is the precision of n-grams times brevity, the penalty "
    "for short translations; their search, --search fairseq of python -m repro translate, makes longer ones."
)


def anchor_section(frame: DataFrame) -> tuple[Block, ...]:
    """The published scores beside ours, and whether one more run might reach them; empty for other tables and texts."""
    rows = _of_recipe(frame)
    beside = {name: of for place, (name, _) in PUBLISHED.items() if (of := _beside(rows, place))}
    heads = dict.fromkeys(head for of in beside.values() for head in of)
    shown = (Column("", head, [of[head] for of in beside.values()], is_words=head == "outcome") for head in heads)
    return (Text(ABOUT_ANCHOR), Table((Column("", "test set", [*beside]), *shown))) if beside else ()


def anchor_found(frame: DataFrame) -> Listing:
    """Where the published scores lie relative to ours, and the parts of both; empty for other tables and texts."""
    rows, said = _of_recipe(frame), list[Words]()
    for place, (name, _) in PUBLISHED.items():
        if of := _beside(rows, place):
            said.append((Strong(name), ": {ours} BLEU, published {published}: {outcome}.".format_map(of)))
    if f"{OF_TEST}/length" in rows.dropna(axis="columns") and said:
        parts = [f"{of} {spreads(rows, f'{OF_TEST}/{of}', 1)[0]} ({theirs:.1f})" for of, theirs in NGRAMS.items()]
        said.append((Strong(PUBLISHED["test"][0]), f", in per cent (published): {', '.join(parts)}."))
    return Listing(tuple(said))


def _of_recipe(frame: DataFrame) -> DataFrame:
    """The row of the recipe, where it was run on its text."""
    is_there = (frame["table"] == ANCHOR) & (frame["row"] == RECIPE) & (frame["n"] > 0)
    return frame[is_there & (CORPUS in frame.attrs["corpora"])]


def _beside(rows: DataFrame, place: str) -> dict[str, str]:
    """Our score on a test set and the published one, by the headings of the columns; empty where not all runs have it.

    One more run lies in the 95 % interval with which the published score is compared.
    """
    score, (_, published) = f"{place}/bleu", PUBLISHED[place]
    if rows.empty or score not in rows or rows[score].isna().any():
        return {}
    scored = rows.assign(n=rows.get(f"{place}/n", rows["n"]))
    row = scored.iloc[0]
    if row["n"] < FEWEST:
        more, outcome = "", f"not judged: {row['n']:.0f} of {FEWEST} runs"
    else:
        reach = row[f"{score}_half_width"] * math.sqrt(1 + row["n"])
        low, high = row[score] - reach, row[score] + reach
        more = f"{low:.1f} to {high:.1f}"
        outcome = "below it" if high < published else "above it" if low > published else "as one more run"
    side = "below" if row[f"{score}_max"] < published else "above" if row[f"{score}_min"] > published else ""
    return {
        "ours": spreads(scored, score, 1)[0],
        "one more run": more,
        "published": f"{published:.1f}",
        "difference": numbers([row[score] - published], "+.1f")[0],
        "outcome": outcome + f"; each of ours {side}" * bool(side),
    }
