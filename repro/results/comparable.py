"""Which records may stand in one cell, and what a reader must know about those in a table.

A mean is over the seeds of one experiment, each of them once. Runs are repetitions only if they share the row, the
text, the deciding code, the precision and the number of threads.
`equal_code.json` lists digests of code in classes that count as equal: runs under two of them gave the same numbers to
the last digit. `shown` names such runs; an entry is added by hand.
"""

import functools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from repro.decoding.search import PAPER_SEARCH
from repro.results.labels import listed_rows, seeds_option
from repro.results.provenance import Provenance
from repro.results.record import BASE, TRANSLATION, Record, signature

if TYPE_CHECKING:
    from pandas import DataFrame

    from repro.data.shards import Prepared

EQUAL_CODE = Path(__file__).with_name("equal_code.json")
OF_CODE = ("code", "task_code")  # the fields that are digests of code, among those that decide a run
SETTINGS = ("batch_tokens", "fill", "precision", "engine", *PAPER_SEARCH.settings, "offset")
SHARES = ("devices", "accumulate")  # only the product matters: each part has its own dropout, in parallel or in turn


@functools.cache
def listed_classes() -> list[list[str]]:
    """The classes of digests that count as equal, the oldest of each class first."""
    classes: list[list[str]] = json.loads(EQUAL_CODE.read_bytes())["classes"]
    return classes


def equal_codes(fingerprint: str) -> list[str]:
    """All digests that count as equal to this one, itself first."""
    found = next((one for one in listed_classes() if fingerprint in one), [])
    return [fingerprint, *(name for name in found if name != fingerprint)]


def code_name(fingerprint: str) -> str:
    """The representative of this digest's class: the first that was listed."""
    return next((one[0] for one in listed_classes() if fingerprint in one), fingerprint)


def shared_code(record: Record) -> str:
    """The name of the code that decides a run, without the code of its own system."""
    return code_name(record.stamp.get("shared_fingerprint", record.stamp["fingerprint"]))


def kind(record: Record) -> dict[str, Any]:
    """What the seeds of a cell must have in common, by the names that readers see."""
    return {
        "deciding code": shared_code(record),
        "code of its system": code_name(record.stamp.get("system_fingerprint", "")),
        "text": record.corpus["sha256"],
        "tokenizer": record.tokenizer["sha256"],
        "threads": record.stamp["n_threads"],
        **{name.replace("_", " "): record.settings.get(name) for name in SETTINGS},
        "parts of an update": math.prod(record.settings.get(name, 1) for name in SHARES),
        "system": record.system,
        **record.hyper,
    }


def differences(one: Record, other: Record) -> list[str]:
    """The names of the differences that keep two records out of one cell."""
    others = kind(other)
    return [name for name, value in kind(one).items() if others.get(name) != value]


def by_cell(records: Iterable[Record]) -> Mapping[tuple[str, str], list[Record]]:
    """The records of each (table, row)."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        cells.setdefault((record.table, record.row), []).append(record)
    return cells


def mixtures(records: Iterable[Record]) -> Iterator[str]:
    """A sentence for each cell that would hold a seed twice, or seeds that are not repetitions of one experiment."""
    for (table, row), of in by_cell(records).items():
        seeds: dict[int, Record] = {}
        for record in of:
            if other := seeds.get(record.seed):
                yield f"{table}, row {row!r}: runs {other.run} and {record.run} have seed {record.seed}. Delete one."
            elif changed := differences(of[0], record):
                yield (
                    f"{table}, row {row!r}: seeds {of[0].seed} and {record.seed} differ in {', '.join(changed)}, so "
                    "they have no mean. Delete the older records and run those seeds again."
                )
            seeds.setdefault(record.seed, record)


def newest(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The records that match the newest of their cell, and those that do not: with other code, threads or text."""
    kept: list[Record] = []
    left: list[Record] = []
    for of in by_cell(records).values():
        last = max(of, key=lambda record: record.stamp["started"])
        for record in of:
            (left if differences(last, record) else kept).append(record)
    return kept, left


def left_out(records: Iterable[Record]) -> list[str]:
    """A sentence for each cell from which seeds are left out."""
    return [
        f"Left out of {row}: seed {', '.join(str(record.seed) for record in of)}, made before with other code or "
        f"settings. The same command with {seeds_option(record.seed for record in of)} makes them again."
        for (_, row), of in by_cell(records).items()
    ]


# Notes: which runs are not in a table, and in what its runs differ

NOT_COMMITTED, NO_COMMIT = "*", "†"  # marks of rows in one's own tables
KEPT = "Finished runs are kept."
AS_PUBLISHED = "bleu_published"
TIMES = " Do not compare seconds that were measured on different devices."
SCORERS = {"bleu": "sacreBLEU", AS_PUBLISHED: "multi-bleu"}  # the usual names of the scorers of translation
Facts = dict[tuple[str, str], dict[str, list[str]]]  # (heading, name) -> value -> the rows that have it


def notes_of(everything: Sequence[Record], shown: Sequence[Record], frame: "DataFrame", facts: Facts) -> list[str]:
    """Notes in sentences: runs that are left out or missing, repeated text, and differences between rows.

    `shown` are the runs of `everything` from which the frame was made; the frame's `marks` must be set.
    """
    found = [*_exclusions(everything, frame), *_common_seeds(frame)]
    finished = (record for record in shown if record.status == "finished")
    if pairs := sorted({record.pair for record in finished if record.scores["test"].get(AS_PUBLISHED, 0) is None}):
        of = ", ".join(pairs)
        found.append(
            f"No multi-bleu score, compounds split, of {of}: the authors' script knows no such target language."
        )
    for corpus, pair in {record.corpus["sha256"]: (record.corpus, record.pair) for record in shown}.values():
        repeats = repeated(cast("Mapping[str, float]", corpus.get("repeats", {})))
        found += [f"{corpus['name']} {pair}: {sentence}" for sentence in (*repeats, *corpus.get("notes", ()))]
    return [*found, *_disagreements(facts)]


def facts_of(records: Iterable[Record]) -> Facts:
    """The facts that the runs of one table should share, with the rows for each value."""
    facts: Facts = {}
    for record in records:
        corpus, tokenizer, stamp, score = record.corpus, record.tokenizer, record.stamp, record.scores["dev"]
        pairs = " / ".join(f"{n:,}" for n in (corpus["n_train"], corpus["n_dev"], corpus["n_test"]))
        own: dict[tuple[str, str], Any] = {
            ("corpus", ""): f"{corpus['name']} {record.pair}, {pairs} pairs, SHA-256 {corpus['sha256'][:12]}",
            ("tokenizer", ""): f"{tokenizer['size']:,} sub-words, SHA-256 {tokenizer['sha256'][:12]}",
            **{(SCORERS.get(name, name), ""): signature(score, name) for name in record.about["scores"]},
            ("commit", ""): (stamp["commit"] or "none")[:12],
            ("deciding code", ""): shared_code(record)[:12],
            ("device", ""): computed_on(stamp),
            **{("versions", name): version or "none" for name, version in stamp["versions"].items()},
            ("settings", "threads"): stamp["n_threads"],
            **{
                ("settings", "machine settings" if name == "machine" else name.replace("_", " ")): value
                for name, value in record.settings.items()
                if name != "gradient_norm"  # only some rows have it; it is listed among the departures
            },
        }
        for fact, value in own.items():
            if value is not None:  # a diverged run has no signatures
                text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
                _add(facts.setdefault(fact, {}), text, record.row)
    return facts


def _add(rows: dict[str, list[str]], key: str, row: str) -> None:
    """Add a row to those of a key, once."""
    if row not in rows.setdefault(key, []):
        rows[key].append(row)


def run_twice(records: Iterable[Record], others: Iterable[Record]) -> list[str]:
    """A sentence on the rows of a table whose model, text and seed also occur in `others`, from other tables."""

    def sample(record: Record) -> tuple[object, ...]:
        """Everything that determines a run's numbers, apart from code and processor."""
        text = record.about["name"], record.corpus["sha256"], record.pair
        return record.system, *text, record.seed, repr(record.hyper)

    elsewhere = {sample(one): f"{one.row} of {one.table}" for one in others}
    found = {one.row: twin for one in records if one.table != BASE and (twin := elsewhere.get(sample(one)))}
    told = "; ".join(f"{row} ({twin})" for row, twin in found.items())
    return [f"One sample and not two, since another table has the same model, text and seeds: {told}."] if told else []


def _exclusions(records: Sequence[Record], frame: "DataFrame") -> Iterable[str]:
    unclean = [record for record in records if record.stamp["dirty"]]
    diverged = [record for record in records if record.status == "diverged"]
    marks = "".join(frame.attrs["marks"])
    if NOT_COMMITTED in marks:
        marked = zip(frame["table"], frame.attrs["marks"], strict=True)
        tables = dict.fromkeys(name for name, mark in marked if NOT_COMMITTED in mark)
        files = ", ".join(f"{name}.py" for name in tables)
        yield f"{NOT_COMMITTED} Nobody else has these rows yet: commit {files} and type the same command again. {KEPT}"
    if NO_COMMIT in marks:
        why = "; ".join(sorted({str(record.stamp["why_dirty"]) for record in unclean}))
        yield f"{NO_COMMIT} Made by code that is in no commit ({why}): commit it and type the command again. {KEPT}"
    elif unclean:
        yield f"Run from uncommitted code, so left out: {seeds_of_rows(unclean)}."
    if diverged:
        yield f"Diverged, so in no mean: {seeds_of_rows(diverged)}."
    if missing := list(frame.loc[frame["n"] == 0, "row"]):
        yield f"No finished run to show: {listed_rows(missing)}."
    if not (frame["table"] == BASE).any() and any(record.about == TRANSLATION for record in records):
        yield "No record of the base row, so no difference to it."


def _common_seeds(frame: "DataFrame") -> Iterable[str]:
    """Which seeds the differences to the base rest on, for rows whose seeds differ from the base's, and which base."""
    seeds, bases = [set(of.split()) for of in frame["seeds"]], frame.attrs["bases"]
    shared: dict[str, list[str]] = {}
    for i, base in enumerate(bases):
        if base is not None and seeds[i] != seeds[base] and seeds[i] and seeds[base]:
            _add(shared, ", ".join(sorted(seeds[i] & seeds[base], key=int)), frame["row"][i])
    if none := shared.pop("", []):
        yield f"No seed in common with the base, so no difference to it: {listed_rows(none)}."
    if shared:
        told = "; ".join(f"{of} ({listed_rows(rows)})" for of, rows in shared.items())
        yield f"Differences to the base are over the seeds that both have: {told}."
    likes = [frame["row"][i] for i, place in enumerate(bases) if place == i and frame["table"][i] != BASE]
    if likes:
        yield f"Differences on other text than the base's are to the base that was trained there: {listed_rows(likes)}."


def seeds_of_rows(records: Iterable[Record]) -> str:
    """The rows with their seeds: h=1 (seed 1, 2), h=4 (seed 1)."""
    seeds: dict[str, list[int]] = {}
    for record in records:
        seeds.setdefault(record.row, []).append(record.seed)
    return ", ".join(f"{row} (seed {', '.join(map(str, sorted(of)))})" for row, of in seeds.items())


def _disagreements(facts: Facts) -> Iterable[str]:
    for (heading, name), values in facts.items():
        if len(values) > 1:
            everyone = list(dict.fromkeys(row for rows in values.values() for row in rows))
            who = "; ".join(f"{value} ({_of(rows, everyone)})" for value, rows in values.items())
            same_code = heading == "commit" and len(facts["deciding code", ""]) == 1
            more = " The deciding code is the same." if same_code else TIMES if heading == "device" else ""
            yield f"Runs differ in {name or heading}: {who}.{more}"


def _of(rows: Sequence[str], everyone: Sequence[str]) -> str:
    """The rows that have a value, in the fewest names: all rows; all rows but base; d_k=16, "hard, sampled"."""
    others = [row for row in everyone if row not in rows]
    fewest = others if len(others) < len(rows) and len(everyone) > 1 else rows
    if fewest is rows:
        return listed_rows(fewest)
    return f"all rows but {listed_rows(fewest)}" if others else "all rows"


TOLD_FROM = 0.01  # share of the lines; smaller shares of repeated text are on the card but not in the notes


def repeated(shares: Mapping[str, float]) -> list[str]:
    """A sentence for each of the shares that is not negligible."""
    told = [
        f"{100 * shares[f'{split}_pairs']:.1f} % of the {split} pairs and {100 * shares[f'{split}_sources']:.1f} % of "
        f"the {split} source sentences are in the training text."
        for split in ("dev", "test")
        if shares.get(f"{split}_sources", 0) >= TOLD_FROM
    ]
    if shares.get("same_sides", 0) >= TOLD_FROM:
        told.append(f"{100 * shares['same_sides']:.1f} % of the training pairs have the same text on both sides.")
    return told


def told_of(name: str, prepared: "Prepared") -> Iterator[str]:
    """What is said of a text that has just been prepared: its sizes, then what a reader of the scores must know."""
    sizes = ", ".join(f"{split} {len(getattr(prepared, split)):,}" for split in ("train", "dev", "test"))
    dropped = f"; left out: {prepared.train.dropped}" if prepared.train.dropped else ""
    tokens = f"{prepared.tokenizer.size:,} tokens, prepared in {prepared.seconds:.1f} s"
    yield f"{name}: {sizes} pairs, {tokens}{dropped}"
    for sentence in (*repeated(prepared.repeats), *prepared.notes):
        yield f"Note on {name}: {sentence}"


# How reproducible runs were shown to be, and on which processors

BADGES = {  # as `repro/runs/determinism.py` gives them
    "L0": "read what the plan says, the same on every machine",
    "L1": "one CPU process, the same to the bit on such a processor",
    "L2": "one GPU, the same to the bit on such a card",
    "L3": "several CPU processes, the same to the bit by as many",
}
NOT_LOOKED_AT = "not checked, from the time before badges"
NO_BADGE = "no badge, since what was read is not what was planned"


def repeatable(records: Iterable[Record]) -> list[str]:
    """A line for each badge and processor: how many runs, what was computed twice, what rules out a higher badge.

    Such as: L1, one CPU process, ...: 8 runs; AMD EPYC, AVX2; 16 micro-batches computed twice.
    """
    found: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}  # -> micro-batches computed twice, of each run
    for record in records:
        told, instructions = record.determinism, record.stamp.get("instructions") or "instructions not noted"
        badge = told["badge"] if told else None
        earned = f"{badge}, {BADGES.get(badge, '')}" if badge else NO_BADGE if told else NOT_LOOKED_AT
        line = earned, f"{computed_on(record.stamp)}, {instructions}", tuple(told["against"]) if told else ()
        found.setdefault(line, []).append(told["replayed"] if told else 0)
    lines = []
    for (earned, processor, against), twice in sorted(found.items()):
        parts = [f"{len(twice)} run{'s' * (len(twice) != 1)}", processor]
        parts += [f"{sum(twice):,} micro-batches computed twice"] if any(twice) else []
        parts += [f"what rules out a higher badge: {', '.join(against)}"] if against else []
        lines.append(f"{earned[0].upper()}{earned[1:]}: {'; '.join(parts)}.")
    return lines


def computed_on(stamp: Provenance) -> str:
    """The name of the GPU or the processor; a processor's with its model, as one name covers several models."""
    on, model = stamp["device"] or stamp["cpu"], stamp.get("cpu_model")
    return f"{on} ({model})" if on == stamp["cpu"] and model else on
