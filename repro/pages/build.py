"""Build the pages under results/ from records; no number in them is typed by hand.

Records are turned into frames and verdicts once, and these into pages, which are data. Separate writers turn pages into
Markdown for a code host, LaTeX for an article, and text for a terminal. The report (`repro/web/`) is for browsers.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from repro.pages import claims, measured, readme, tables
from repro.pages.columns import has_part, sheet
from repro.pages.scale_data import ScaleData, judged_of, scale_data, scales
from repro.pages.tables import is_like_others, page_of_table
from repro.render.latex import latex
from repro.render.markup import markdown
from repro.render.page import Page, Table, is_generated
from repro.render.terminal import terminal
from repro.results.frame import FIGURES, ResultSet
from repro.results.measured import load
from repro.results.places import EXPERIMENTS, PUBLISHED
from repro.results.provenance import is_committed
from repro.results.record import BASE
from repro.storage.atomic import write_text

Texts = dict[Path, str]  # what stands in each file


def build_scale(result_set: ResultSet) -> Texts:
    """The files of one scale: of its tables, verdicts and figures, and of its main page; none without records."""
    data = scale_data(result_set)
    return _files_of_scale(data) if data else {}


def _files_of_scale(data: ScaleData) -> Texts:
    result_set, is_explored = data.result_set, data.evidence.is_exploration
    # a published part of Table 3 stands on that table's page alone
    frames = {name: frame for name, frame in data.frames.items() if result_set.own or not has_part(name)}
    judged = () if is_explored else (*data.judged, *data.stated)
    pages = {name: page_of_table(frame, data.runs.scale, name, judged) for name, frame in frames.items()}
    if is_explored and not result_set.own:
        pages = {name: brief(page) for name, page in pages.items()}
    pictures = {file.stem for file in (result_set.folder / FIGURES).glob("*.svg")}
    folder, made = result_set.folder, Texts()
    for name, frame in frames.items():
        made |= _files(folder / name, pages[name], sheet(frame), is_article=True)
    if not is_explored:
        for of, verdicts in ((claims.OF_PAPER, data.judged), (claims.OF_TEXTS, data.stated)):
            made |= _files(folder / of.name, claims.page(data, of), claims.sheet(verdicts))
    others = {f"../{place}": title for kind, (place, title, *_) in measured.PAGES.items() if load(folder.parent, kind)}
    titles = {name: page.title.removesuffix(f" at scale {data.runs.scale}") for name, page in pages.items()}
    found = {name: readme.found_in(page) for name, page in pages.items()}
    made |= _files(folder / readme.NAME, readme.page_of_scale(data, others | titles, pictures, found))
    if gallery := readme.figures_page(data, pictures):
        made |= _files(folder / FIGURES, gallery)
    return made


def _files(place: Path, page: Page, sheet: str = "", *, is_article: bool = False) -> Texts:
    """The files of a page, called as `place`: Markdown; LaTeX for an article; the `sheet` of its numbers."""
    made = {place.with_name(f"{place.name}.md"): markdown(page)}
    if is_article:
        made[place.with_name(f"{place.name}.tex")] = latex(page, f"{place.parent.name}/{place.name}")
    return made | ({place.with_name(f"{place.name}.csv"): sheet} if sheet else {})


def brief(page: Page) -> Page:
    """A page down to its first table, and where its signs are explained: so much of runs that settle nothing."""
    end = next(i for i, block in enumerate(page.blocks, start=1) if isinstance(block, Table))
    return replace(page, blocks=(*page.blocks[:end], page.blocks[-1]))


def build_measured(results: Path, *kinds: type) -> Texts:
    """The files of what was measured at no scale and is kept under `results`: of these kinds of measurements."""
    made = Texts()
    for kind in kinds:
        place, _, page, sheet = measured.PAGES[kind]
        if found := load(results, kind):
            made |= _files(results / place, page(found), sheet(found), is_article=True)
    return made


def verdicts_of(result_set: ResultSet) -> dict[str, str]:
    """The verdict on every claim and statement of a scale, by id, from its records alone; empty without any."""
    _, *both = judged_of(result_set) if result_set.everything else ((),)
    return {one.claim.id: one.verdict for judged in both for one in judged}


def console(result_set: ResultSet, tables_shown: Iterable[str]) -> str:
    """What an experiment prints at its end: the rows of these tables, yours beside the published and the paper's."""
    frames = {name: result_set.frame([name]) for name in sorted({*tables_shown})}
    apart = {name: of for name, of in frames.items() if of is not None and not is_like_others(name, of)}
    pages = [tables.at_the_end(of, name) for name, of in apart.items()]
    if frames.keys() - apart.keys() and (alike := result_set.frame({BASE, *frames.keys() - apart.keys()})) is not None:
        pages.insert(0, tables.at_the_end(alike))
    return "\n".join(map(terminal, pages))


def write(texts: Texts) -> list[Path]:
    """Write these files; returns them."""
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def write_scale(result_set: ResultSet) -> list[Path]:
    """Rewrite all files of one scale; returns them."""
    return write(build_scale(result_set))


def read_results(results: Path, *, own: bool = False) -> list[ResultSet]:
    """The results under `results`, scale by scale; if they are one's `own`, with the published ones beside them."""
    found = [ResultSet.read(folder) for folder in scales(results)]
    if not own:
        return found
    tables = {name for one in found for name in one.tables} - {BASE}
    uncommitted = {name for name in tables if is_committed(EXPERIMENTS / f"{name}.py") is False}
    return [ResultSet.read_own(one.folder, PUBLISHED, uncommitted.intersection(one.tables)) for one in found]


def build_all(results: Path, *, own: bool = False) -> Texts:
    """Every file that is made from the records under `results`, with its text.

    An empty text marks a file that was generated earlier and no longer has a source. A page over all scales that was
    written by hand stays.
    """
    made = build_measured(results, *measured.PAGES)
    known = [data for one in read_results(results, own=own) if (data := scale_data(one))]
    for data in known:
        made |= _files_of_scale(data)
    over_all = results / f"{readme.NAME}.md"
    is_by_hand = over_all.exists() and not is_generated(read(over_all))
    if not is_by_hand and (whole := readme.page_of_all(known)):
        made[over_all] = markdown(whole)
    for folder in (results, *(data.result_set.folder for data in known)):
        for page in folder.glob("*.md"):
            if page not in made and is_generated(read(page)):
                made |= {file: "" for end in ("md", "csv", "tex") if (file := page.with_suffix(f".{end}")).exists()}
    return made


def read(file: Path) -> str:
    """The current text of a page."""
    return file.read_bytes().decode("utf-8", "backslashreplace")
