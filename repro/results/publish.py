"""Publish one's own results: only whole rows, from committed code and committed experiments.

Paper: none. These rules ensure that a published cell is a mean over seeds of one experiment that anybody can repeat.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from repro.results import artifacts, provenance, sentences
from repro.results.artifacts import first_sentences, inside_file, write_inside
from repro.results.comparable import by_cell, computed_on, differences, mixtures, seeds_of_rows
from repro.results.frame import ResultSet, note_rows
from repro.results.labels import seeds_option
from repro.results.measured import FILES, Measured, load
from repro.results.record import BASE, PROGRAM, SPLITS, Record, path, save_together, slug

COMPARED = 5  # of the base's runs, the first, that are looked into
Rescored = Callable[[Record, Path], str | None]  # record, folder of results -> what is wrong with its BLEU, if anything


def without_programs(own: ResultSet) -> ResultSet:
    """The results without the rows that a program passed to `repro.run`: no experiment file can make those again."""
    return replace(own, tables={name: records for name, records in own.tables.items() if name != PROGRAM})


def refuse_unpublishable(own: ResultSet, published: ResultSet, experiments: Path, rescored: Rescored) -> None:
    """Raise ValueError with a line for each reason why the records of one scale may not be published.

    `rescored` scores the translations beside them again where their text is available.
    """
    if not own.everything:
        raise ValueError(f"{own.folder}: expected records to publish, found none. Run an experiment first.")
    reasons = [*_refusals(own.everything, own.rows, published.everything, experiments)]
    if reasons := [*reasons, *_unlike_outputs(own, published, rescored)]:
        raise ValueError("\n".join([f"Nothing of {own.scale} is published:", *(f"  {reason}" for reason in reasons)]))


def what_changes(own: ResultSet, published: ResultSet) -> tuple[list[str], list[str]]:
    """The runs that are new, row by row, and the records that are replaced, each with its differences old -> new."""
    there = {_cell(record): record for record in published.everything}
    new = by_cell(record for record in own.everything if _cell(record) not in there)
    replaced = []
    for record in own.everything:
        if (before := there.get(_cell(record), record)) != record:
            old, now = _facts(before), _facts(record)
            told = [f"{name} {old[name]} -> {now[name]}" for name in old if old[name] != now[name]]
            replaced.append(f"{_of(record)}: {', '.join(told) or 'other content'}")
    return [f"new: {seeds_of_rows(of)}" for of in new.values()], replaced


def published_with(own: ResultSet, published: ResultSet) -> ResultSet:
    """The published results as they would be with these records."""
    tables, rows = {}, {key: row for key, row in own.rows.items() if key[0] in {BASE, *own.tables}}
    for name in {**published.tables, **own.tables}:
        records = {_cell(record): record for of in (published, own) for record in of.tables.get(name, ())}
        tables[name] = list(records.values())
    return replace(published, tables=tables, rows={**published.rows, **rows})


def publish(own: ResultSet, published: ResultSet) -> None:
    """Write accepted records and rows, and the files beside them; `repro.pages.build` makes the pages."""
    results = published.folder.parent
    for table, records in ((name, of) for name, of in own.tables.items() if of):
        folder = published.folder / table
        every = [*(one for one in published.everything if one.table == table), *records]
        runs = {path(results, one).stem: one.run for one in every}
        kept = {} if is_of_trials(table) else runs
        artifacts.publish(folder, own.folder / table, kept, whole=_is_whole(table))
        keep_few_insides(folder)
        if is_exploration(table):
            save_together(folder, records)
        else:
            for record in records:  # last, so that a run with a record is complete
                record.save(path(results, record))
    if own.everything:
        note_rows(published.folder, published_with(own, published).rows)


def is_exploration(table: str) -> bool:
    """Whether a table asks a question of our own; its records, which are many, are published in one file."""
    return table.startswith(("ladder", "lab_"))


def is_of_trials(table: str) -> bool:
    """Whether a table only chooses learning rates, by runs that count in no verdict: nobody reads their sentences."""
    return table.endswith("_rates")


def _is_whole(table: str) -> bool:
    """Whether sentences of all texts are published; nothing reads more than dev of Table 3 and our own questions."""
    return not is_exploration(table) and not table.startswith("table3")


def _cell(record: Record) -> tuple[str, str, int]:
    return record.table, record.row, record.seed


def _facts(record: Record) -> dict[str, str]:
    """The facts by which records of the same row and seed may differ."""
    scores = {f"dev {name}": record.score("dev", name) for name in ("ppl", *record.about["scores"])}
    return {
        "commit": (record.stamp["commit"] or "none")[:12],
        "processor": computed_on(record.stamp),
        "status": record.status,
        **{name: "none" if value is None else f"{value:.2f}" for name, value in scores.items()},
        "run": record.run,
    }


def keep_few_insides(folder: Path) -> None:
    """Keep the sentences that are shown: figures compare the base's first five runs and soft alignment's first one.

    The viewer shows a sentence of the lowest seed of each row of Table 3; of other rows nothing is kept.
    """
    stems = [file.name.removesuffix(".inside.gz").rpartition("-seed") for file in folder.glob("*-seed*.inside.gz")]
    seeds: dict[str, list[str]] = {}
    for row, _, seed in sorted(stems, key=lambda stem: int(stem[2])):
        seeds.setdefault(row, []).append(seed)
    most = COMPARED if folder.name == BASE else 1
    for row, _, seed in stems:
        place = folder / f"{row}-seed{seed}.json"
        is_compared = folder.name == BASE or (folder.name, row) == ("ladder", slug("soft alignment"))
        if seed not in seeds[row][:most] or not (is_compared or folder.name.startswith("table3")):
            inside_file(place).unlink()
        elif not is_compared:
            write_inside(place, first_sentences(place, 1))


def layers_to_publish(own: Path) -> Measured:
    """The measurement of Table 1's layers under the folder `own` of results, which may replace the published one.

    Raises ValueError if there is none, or if its code is not committed.
    """
    mine, file, again = load(own, Measured), own / FILES[Measured][0], "Type python experiments/table1.py again."
    if mine is None:
        raise ValueError(f"{file}: expected measurements to publish, found none. {again}")
    if mine.stamp["dirty"]:
        raise ValueError(f"{file} is of code that is in no commit ({mine.stamp['why_dirty']}). Commit it. {again}")
    return mine


def _refusals(
    own: Sequence[Record], rows: Collection[tuple[str, str]], published: Sequence[Record], experiments: Path
) -> Iterator[str]:
    """Why these records may not stand among the published ones."""
    again = "Type its command again: finished runs are kept."
    for table in dict.fromkeys(record.table for record in own):
        if table == BASE or provenance.is_committed(file := experiments / f"{table}.py"):
            continue
        if not file.exists():  # for example a package installed without a clone
            yield f"{table}: expected {file}, which has its rows, found none. Publish in a clone, with --from."
        else:
            yield f"{table}: {file} is not committed, so nobody else has its rows. Commit it. {again}"
    tables = {of for of, _ in rows}
    for record in own:
        if record.table not in tables:
            yield f"{_of(record)}: rows.json beside the tables does not list those of {record.table}. {again}"
        elif (record.table, record.row) not in rows:
            yield f"{_of(record)}: {experiments / record.table}.py has no such row any more. Delete its record."
        if record.stamp["dirty"]:
            yield f"{_of(record)} is of code that is in no commit ({record.stamp['why_dirty']}). Commit it. {again}"
    yield from mixtures(own)
    for cell, standing in by_cell(published).items():
        mine = by_cell(own).get(cell, [])
        theirs = [record for record in standing if record.seed not in {one.seed for one in mine}]
        if mine and theirs and (changed := differences(theirs[0], mine[0])):
            seeds = ", ".join(str(record.seed) for record in theirs)
            yield (
                f"{_of(mine[0])} differs from the published seed {seeds} in {', '.join(changed)}, so they have no "
                f"mean. Run it with {seeds_option(record.seed for record in theirs)} and publish the row whole."
            )


def _unlike_outputs(own: ResultSet, published: ResultSet, rescored: Rescored) -> Iterator[str]:
    """Why the outputs of these runs do not match their scores; runs that are published without outputs are skipped."""
    before, results = {record.run for record in published.everything}, own.folder.parent
    for record in own.everything:
        kept = artifacts.texts(path(results, record))
        if record.run in before and not kept:
            continue  # older than the keeping of outputs
        needed = SPLITS if _is_whole(record.table) else SPLITS[:1]  # a published folder has fewer
        found = [*sentences.faults(results, record, [one for one in SPLITS if one in needed or one in kept])]
        if not found and sentences.has_sentences(record) and (wrong := rescored(record, results)):
            found = [wrong]
        yield from (
            f"{_of(record)}: {fault}. Delete the files beside its record and runs/{record.run}/*.parquet, or the whole "
            "folder of the run if it has neither dev.hyp nor test.hyp; then type its command again."
            for fault in found
        )


def _of(record: Record) -> str:
    return f"{record.table}, row {record.row!r}, seed {record.seed}"
