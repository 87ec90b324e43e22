"""results/<scale>/README.md: tables, verdicts and figures of one scale on one page. Paper: sections 4 and 6."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from repro.pages import of_others, table1
from repro.pages.claims import OF_PAPER, OF_TEXTS, agreement, outcomes, settles
from repro.pages.scale_data import ScaleData
from repro.pages.words import reading, to_project
from repro.render.page import (
    Block,
    Emphasis,
    Heading,
    Link,
    Listing,
    Page,
    Picture,
    Strong,
    Table,
    Text,
    Words,
    blocks,
    inlines,
    joined,
    made_from,
)
from repro.render.several import several
from repro.results.frame import FIGURES

NAME = "README"
SHOWN = {  # pictures on the page of the scale, the first two that exist: name of the file -> what it shows
    "differences": "Each row of Table 3 against the base, beside what the paper prints. Each interval is of one row by "
    "itself, at 95 %; verdicts ask for wider ones, so one that leaves out 0 may be undetermined",
    "text_sizes": "What rows are worth on little text and on much, with equal updates: each less the base of the same "
    "text and seed, with its 95 % interval; above 0 the row is better",
    "quality_and_cost": "Quality against the cost of training",
}
ELSEWHERE = {
    table1.NAME: "Table 1: layers",
    of_others.OUTPUTS: "Published translations of newstest2017",
}  # not of one scale
FIGURES_LINK = Link(f"{FIGURES}.md", FIGURES, to_page=True)


def page(data: ScaleData, names: Sequence[str], pictures: Collection[str], tables: Mapping[str, Page]) -> Page:
    """The page of one scale: what was found, two pictures, and links to the pages of its tables, by their `names`.

    Without verdicts, for exploration, the findings with which the pages of `tables` begin are listed.
    """
    runs = data.runs
    count = f"{several(runs.n, 'run')} of {several(runs.n_rows, 'row')}, {' '.join(runs.took)} in all. "
    return Page(
        made_from("the records beside it"),
        blocks(
            Heading((Emphasis("Attention Is All You Need"), f" at scale {runs.scale}"), 1),
            Text(_agreement(data)),
            _found_in(tables) if data.is_exploration else outcomes(data.judged),
            Text((count, *_standing(data))),
            _pictures_shown(pictures),
            Heading("Tables"),
            Listing(tuple(_links(names, tables, runs.scale))),
            reading(own=data.result_set.own),
        ),
    )


def _found_in(tables: Mapping[str, Page]) -> Listing:
    """The findings with which each page of a table begins."""
    before = {name: takewhile(lambda block: not isinstance(block, Table), of.blocks) for name, of in tables.items()}
    return Listing(
        tuple(
            (Link(name, name, to_page=True), ": ", *inlines(item))
            for name, blocks_before in before.items()
            for lines in blocks_before
            if isinstance(lines, Listing)
            for item in lines.items
        )
    )


def figures_page(data: ScaleData, pictures: Collection[str]) -> Page | None:
    """The page of all pictures of a scale, the paper's first, after a summary; None where there are none."""
    if not pictures:
        return None
    names = sorted(pictures, key=lambda name: (not name.startswith("figure"), name))
    explained = Link("What each picture shows", f"{to_project(own=data.result_set.own)}/docs/figures.md")
    said = Text(joined([_agreement(data), _standing(data), (explained, ".")]))
    shown = [Picture(f"{FIGURES}/{name}.svg", SHOWN.get(name, name.replace("_", " ").capitalize())) for name in names]
    heading = Heading(f"Figures at scale {data.runs.scale}", 1)
    return Page(made_from("the pictures beside it"), blocks(heading, said, shown))


def _agreement(data: ScaleData) -> str:
    """A sentence on how our differences agree with the printed ones; empty for exploration."""
    return "" if data.is_exploration else agreement(data)


def _standing(data: ScaleData) -> Words:
    """What the runs may show; if none is evidence, or they are too few for every claim, only that."""
    if data.is_exploration:
        return "All of it is ", Strong("exploration"), ": no run counts as evidence."
    if not settles(data.judged):
        return ("No claim about trained rows has all the runs that it needs, so nothing is settled here.",)
    more: Words = (
        " Each claim with its numbers: ",
        Link(f"{OF_PAPER.name}.md", OF_PAPER.name, to_page=True),
        "; each statement: ",
        Link(f"{OF_TEXTS.name}.md", OF_TEXTS.name, to_page=True),
        ".",
    )
    return "A page of this scale shows ", Strong(data.runs.claim), ".", *more


def _links(names: Sequence[str], tables: Mapping[str, Page], scale: str) -> Iterable[Words]:
    """Links to the tables, by title."""
    titles = {name: page.title.removesuffix(f" at scale {scale}") for name, page in tables.items()} | ELSEWHERE
    links = [Link(titles[place.rpartition("/")[2]], place, to_page=True) for place in names]
    yield *joined([(link,) for link in sorted(links, key=lambda link: link.text)], "; "), "."
    yield "Beside each page stand its table as LaTeX and all its numbers as CSV, under the same name."


def _pictures_shown(there: Collection[str]) -> tuple[Block, ...]:
    """Two of the existing pictures, and a link to all of them."""
    if not there:
        return ()
    shown = [Picture(f"{FIGURES}/{name}.svg", text) for name, text in SHOWN.items() if name in there][:2]
    told = Text((f"{several(len(there), 'picture')}, those of the paper first: ", FIGURES_LINK, "."))
    return Heading("Figures"), *shown, told
