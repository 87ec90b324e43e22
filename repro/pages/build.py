"""What stands under results/ is made from records; nobody types a number into it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from repro.claims import judge
from repro.pages import scale, table1, table2, table3
from repro.render.grid import markdown_grid
from repro.results.frame import ResultSet, closing, files, latex, markdown, record_folders, render
from repro.results.places import EXPERIMENTS, OWN, PUBLISHED
from repro.results.provenance import is_committed
from repro.results.record import BASE
from repro.storage.atomic import write_text


def build(result_set: ResultSet, name: str) -> dict[Path, str]:
    """The files of one table and their texts, made from its records alone."""
    frame = result_set.frame([name])
    if frame is None:
        raise ValueError(f"{result_set.folder / name}: expected records, found none. Run experiments/{name}.py first.")
    return files(result_set, name, frame, markdown(frame, result_set.scale, name), latex(frame, result_set.scale, name))


def build_scale(result_set: ResultSet) -> dict[Path, str]:
    """All files of one scale: a page for each table, Table 3 on one page, the verdicts, and the page of pages."""
    texts: dict[Path, str] = {}
    for name, records in result_set.tables.items():
        if records and name not in (BASE, table2.NAME):
            texts |= build(result_set, name)
    layers = table1.judged(result_set.folder.parent)  # of no scale
    if result_set.own and not layers:
        layers = table1.judged(PUBLISHED)
    judged = judge.judge(result_set.everything, result_set.rows, layers)
    return (
        texts
        | table2.build(result_set)
        | table3.build(result_set)
        | judge.build(result_set, judged)
        | scale.build(result_set, judged)
    )


def console(result_set: ResultSet, tables: Iterable[str]) -> str:
    """What an experiment shows at its end: the rows of these tables, yours beside the published and the paper's."""
    names = [*tables]
    others = result_set.frame({BASE, *names} - {table2.NAME})
    second = result_set.frame([table2.NAME]) if table2.NAME in names else None
    shown = [render(others)] if others is not None and names != [table2.NAME] else []
    return "\n".join([*shown, *([table2.render(second)] if second is not None else [])])


def write_scale(result_set: ResultSet) -> list[Path]:
    """Write all files of one scale anew; returns them."""
    texts = build_scale(result_set)
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def uncommitted(tables: Iterable[str], experiments: Path = EXPERIMENTS) -> list[str]:
    """The tables of which the experiment file is not as its commit has it; none where there is no git to ask."""
    return [name for name in tables if name != BASE and is_committed(experiments / f"{name}.py") is False]


def scales(results: Path) -> list[Path]:
    """The folders of scales that have records."""
    return sorted(folder for folder in results.glob("*/") if folder.name != OWN.name and record_folders(folder))


def build_all(results: Path, *, own: bool = False) -> dict[Path, str]:
    """Every file that is made of the records under `results`, the table in the README of their project among them."""
    texts = table1.build(results)
    result_sets = [ResultSet.read(folder) for folder in scales(results)]
    if own:
        result_sets = [
            ResultSet.read_own(result_set.folder, PUBLISHED, uncommitted(result_set.tables))
            for result_set in result_sets
        ]
    for result_set in result_sets:
        texts |= build_scale(result_set)
    readme = results.parent / "README.md"
    if readme.exists() and not own:
        texts[readme] = quote(read(readme), {result_set.folder.name: result_set for result_set in result_sets})
    return texts


def quote(document: str, published: Mapping[str, ResultSet]) -> str:
    """Renew what stands between `<!-- closing table: SCALE TABLE seed N -->` and `<!-- end -->`.

    It is the table that the experiment shows at its end, to somebody who gets what was published with that seed.
    """

    def grid(mark: re.Match[str]) -> str:
        result_set = published.get(mark["scale"])
        if result_set is None:
            return f"{mark['begin']}{mark['end']}"
        one = {
            name: [record for record in records if record.seed == int(mark["seed"])]
            for name, records in result_set.tables.items()
        }
        frame = replace(result_set, tables=one, own=True, published=result_set).frame([mark["table"]])
        table = markdown_grid(closing(frame)) if frame is not None else ""
        return f"{mark['begin']}{table}\n{mark['end']}"

    begin = r"(?P<begin><!-- closing table: (?P<scale>\S+) (?P<table>\S+) seed (?P<seed>\d+) -->\n)"
    return re.sub(rf"{begin}.*?(?P<end><!-- end -->)", grid, document, flags=re.DOTALL)


def read(file: Path) -> str:
    """The text of a page as it stands."""
    return file.read_bytes().decode("utf-8", "backslashreplace")
