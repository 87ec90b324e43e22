"""Build the pages under results/ from records; no number in them is typed by hand.

Records are turned into frames and verdicts once, and these into pages, which are data. Separate writers turn pages into
Markdown for a code host, LaTeX for an article, and text for a terminal. The report (`repro/web/`) is for browsers.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from repro.claims import tested
from repro.claims.catalogue import CLAIMS, LISTED, STATEMENTS
from repro.claims.evidence import evidence_of
from repro.claims.judge import NOTHING_MEASURED, LayerOutcomes, judge, verdicts_of_print
from repro.claims.layers import verdicts
from repro.pages import claims, measured, readme, tables
from repro.pages.columns import has_part, sheet
from repro.pages.scale_data import ScaleData, scale_data
from repro.pages.tables import is_like_others, page_of_table
from repro.render.latex import latex
from repro.render.markup import markdown
from repro.render.page import Page, Table, is_generated
from repro.render.terminal import terminal
from repro.results.frame import FIGURES, ResultSet, noted_rows, record_folders
from repro.results.measured import Measured, load
from repro.results.places import EXPERIMENTS, OWN, PUBLISHED
from repro.results.provenance import is_committed
from repro.results.record import BASE
from repro.storage.atomic import write_text


class Document(NamedTuple):
    """A page, and for a table of numbers its other forms."""

    page: Page
    sheet: str = ""  # the same as comma-separated values
    is_article: bool = False  # whether it is written as LaTeX too


VERDICTS = (claims.OF_PAPER.name, claims.OF_TEXTS.name)
Documents = dict[Path, Document]  # by the file without its suffix


# From records to pages


def build_scale(result_set: ResultSet, layers: LayerOutcomes = NOTHING_MEASURED) -> Documents:
    """The pages of one scale: one for each table, one for all of Table 3, the verdicts, and the scale's main page.

    `layers` are the verdicts on the claims about layers. Without records there are no pages.
    """
    data = scale_data(result_set, layers)
    return _pages_of_scale(data) if data else {}


def _pages_of_scale(data: ScaleData) -> Documents:
    result_set = data.result_set
    judged = () if data.evidence.is_exploration else (*data.judged, *data.stated)
    # a published part of Table 3 stands on that table's page alone
    frames = {name: frame for name, frame in data.frames.items() if result_set.own or not has_part(name)}
    pages = {name: page_of_table(frame, data.runs.scale, name, judged) for name, frame in frames.items()}
    if data.evidence.is_exploration and not result_set.own:
        pages = {name: brief(page) for name, page in pages.items()}
    pictures = {file.stem for file in (result_set.folder / FIGURES).glob("*.svg")}
    made = {name: Document(pages[name], sheet(frame), is_article=True) for name, frame in frames.items()}
    if not data.evidence.is_exploration:
        for of, verdicts in ((claims.OF_PAPER, data.judged), (claims.OF_TEXTS, data.stated)):
            made[of.name] = Document(claims.page(data, of), claims.sheet(verdicts))
    others = {f"../{of.place}": of.title for kind, of in measured.PAGES.items() if load(result_set.folder.parent, kind)}
    titles = {name: page.title.removesuffix(f" at scale {data.runs.scale}") for name, page in pages.items()}
    found = {name: readme.found_in(page) for name, page in pages.items()}
    made[readme.NAME] = Document(readme.page_of_scale(data, others | titles, pictures, found))
    if gallery := readme.figures_page(data, pictures):
        made[FIGURES] = Document(gallery)
    return {result_set.folder / name: document for name, document in made.items()}


def brief(page: Page) -> Page:
    """A page down to its first table, and where its signs are explained: so much of runs that settle nothing."""
    end = next(i for i, block in enumerate(page.blocks, start=1) if isinstance(block, Table))
    return replace(page, blocks=(*page.blocks[:end], page.blocks[-1]))


def build_measured(results: Path, *kinds: type) -> Documents:
    """The pages of what was measured at no scale and is kept under `results`: of these kinds of measurements."""
    found = [(measured.PAGES[kind], load(results, kind)) for kind in kinds]
    return {results / of.place: Document(of.page(one), of.sheet(one), is_article=True) for of, one in found if one}


def judged_without_runs(result_set: ResultSet) -> LayerOutcomes:
    """The verdicts on claims that need no run: by named tests, by measured layers, by what the paper prints.

    The printed numbers of a row are noted only at scales that ran it. They are the same at all, so all scales are read.
    """
    results = result_set.folder.parent
    layers, tests = load(results, Measured), tested.read_outcomes(results)
    noted = [noted_rows(folder) for folder in scales(results)]
    if result_set.own:  # one's own results may lack both, then the published ones are used
        layers = layers or load(PUBLISHED, Measured)
        tests = tests if tests.ran else tested.read_outcomes(PUBLISHED)
        noted = [*map(noted_rows, scales(PUBLISHED)), *noted]
    printed = {f"{table}/{row}": one.paper for rows in (*noted, result_set.rows) for (table, row), one in rows.items()}
    of_print = verdicts_of_print(printed, (*CLAIMS, *STATEMENTS))
    return {**of_print, **tested.verdicts_of_tests(LISTED, tests), **(verdicts(layers) if layers else {})}


def verdicts_of(result_set: ResultSet) -> dict[str, str]:
    """The verdict on every claim and statement of a scale, by id, from its records alone; empty without any."""
    if not result_set.everything:
        return {}
    evidence, known = evidence_of(result_set.everything, result_set.rows), judged_without_runs(result_set)
    return {
        one.claim.id: one.verdict
        for claims_of_page in (CLAIMS, STATEMENTS)
        for one in judge(evidence, known, claims_of_page)
    }


def console(result_set: ResultSet, tables_shown: Iterable[str]) -> str:
    """What an experiment prints at its end: the rows of these tables, yours beside the published and the paper's."""
    frames = {name: result_set.frame([name]) for name in sorted({*tables_shown})}
    apart = {name: of for name, of in frames.items() if of is not None and not is_like_others(name, of)}
    pages = [tables.at_the_end(of, name) for name, of in apart.items()]
    if frames.keys() - apart.keys() and (alike := result_set.frame({BASE, *frames.keys() - apart.keys()})) is not None:
        pages.insert(0, tables.at_the_end(alike))
    return "\n".join(map(terminal, pages))


# From pages to files


def texts(documents: Documents) -> dict[Path, str]:
    """The files of these pages: Markdown for each, for tables also LaTeX and comma-separated values."""
    written = {}
    for file, document in documents.items():
        written[file.with_name(f"{file.name}.md")] = markdown(document.page)
        if document.is_article:
            written[file.with_name(f"{file.name}.tex")] = latex(document.page, f"{file.parent.name}/{file.name}")
        if document.sheet:
            written[file.with_name(f"{file.name}.csv")] = document.sheet
    return written


def write(documents: Documents) -> list[Path]:
    """Write the files of these pages; returns them."""
    written = texts(documents)
    for file, text in written.items():
        write_text(file, text)
    return list(written)


def write_scale(result_set: ResultSet) -> list[Path]:
    """Rewrite all files of one scale; returns them."""
    return write(build_scale(result_set, judged_without_runs(result_set)))


def scales(results: Path) -> list[Path]:
    """The folders of scales that have records."""
    return sorted(folder for folder in results.glob("*/") if folder.name != OWN.name and record_folders(folder))


def build_pages(results: Path, result_sets: Iterable[ResultSet]) -> Documents:
    """Every page made from the files under `results`; the verdicts of each scale are computed once for all pages."""
    made = build_measured(results, *measured.PAGES)
    known: list[ScaleData] = []
    for result_set in result_sets:
        if data := scale_data(result_set, judged_without_runs(result_set)):
            made |= _pages_of_scale(data)
            known.append(data)
    whole = readme.page_of_all(known)
    return made | ({results / readme.NAME: Document(whole)} if whole else {})


def read_results(results: Path, *, own: bool = False) -> list[ResultSet]:
    """The results under `results`, scale by scale; if they are one's `own`, with the published ones beside them."""
    found = [ResultSet.read(folder) for folder in scales(results)]
    if not own:
        return found
    tables = {name for one in found for name in one.tables} - {BASE}
    uncommitted = {name for name in tables if is_committed(EXPERIMENTS / f"{name}.py") is False}
    return [ResultSet.read_own(one.folder, PUBLISHED, uncommitted.intersection(one.tables)) for one in found]


def build_all(results: Path, *, own: bool = False) -> dict[Path, str]:
    """Every file that is made from the records under `results`, with its text.

    An empty text marks a file that was generated earlier and no longer has a source. A page over all scales that was
    written by hand stays.
    """
    result_sets = read_results(results, own=own)
    made = texts(build_pages(results, result_sets))
    for one, end in itertools.product(result_sets, ("md", "csv", "tex")):
        for file in (one.folder / f"{name}.{end}" for name in (*VERDICTS, *one.tables)):
            if file.exists():
                made.setdefault(file, "")  # the scale turned out to be exploration
    over_all = results / f"{readme.NAME}.md"
    if over_all.exists() and is_generated(read(over_all)):
        made.setdefault(over_all, "")
    elif over_all.exists():
        made.pop(over_all, None)  # somebody wrote it
    return made


def read(file: Path) -> str:
    """The current text of a page."""
    return file.read_bytes().decode("utf-8", "backslashreplace")
