"""results/<scale>/README.md: tables, verdicts and figures of one scale on one page. Paper: sections 4 and 6."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from repro.pages import of_others, table1
from repro.pages.claims import OF_PAPER, OF_TEXTS, agreement, outcomes, settles
from repro.pages.scale_data import ScaleData
from repro.pages.words import reading
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
PICTURES = {  # name of the file -> what it shows; the paper's figures first, then ours
    "figure1_architecture": "The architecture, drawn from the modules of the model (figure 1)",
    "figure2_attention": "Scaled dot-product and multi-head attention, from the operations executed (figure 2)",
    "figure3_long_distance": "The second-to-last encoder layer at “making” of the paper's sentence (figure 3)",
    "figure4_sharp_heads": "The two heads that are sharpest at “its” of the paper's sentence (figure 4)",
    "figure5_different_heads": "The two heads that differ most on the paper's sentence (figure 5)",
    "softmax_saturation": "What dividing by √d_k prevents (section 3.2.1)",
    "mask": "Scores of six words, what the mask leaves of them, and the softmax of that (section 3.2.3)",
    "norms": "Which cells of a batch share a mean: layer and batch normalisation (section 3.1)",
    "softmax_of_unequal": "The softmax of two equal scores and one twice as large, and its Jacobian",
    "position_codes": "Position codes, and how similar that of one position is to those around it",
    "where_the_source_enters": "Three decoders: where the source enters each of them",
    "soft_alignment": "Where soft alignment looks while it translates, beside the base's mean head (section 3.2.3)",
    "source_gradients": "Which positions of the source the first word written depends on, in three systems",
    "activations": "Mean and variance of the activations between sub-layers, with norms and without (section 3.1)",
    "head_similarity": "How similar the heads of our base are, within a layer and between layers (section 3.2.2)",
    "differences": "Each row of Table 3 against the base, beside what the paper prints. Each interval is of one row by "
    "itself, at 95 %; verdicts ask for wider ones, so one that leaves out 0 may be undetermined",
    "quality_and_cost": "Quality against the cost of training",
    "text_sizes": "What rows are worth on little text and on much, with equal updates: each less the base of the same "
    "text and seed, with its 95 % interval; above 0 the row is better",
}
SHOWN = ("differences", "text_sizes", "quality_and_cost")  # the page of the scale shows the first two that exist
OF_A_TABLE = {  # by the prefix of the file's name, which ends with the table's name
    "curves_": "How the rows of {} learned",
    "operations_": "Dev loss of the rows of {} over updates and over FLOPs of training",
    "fading_": "BLEU of the rows of {} by the length of the source and by the position in the translation",
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
            Text(agreement(data)),
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
    said = Text(joined([agreement(data), _standing(data)]))
    shown = [Picture(f"{FIGURES}/{name}.svg", text) for name, text in _captions(pictures).items()]
    heading = Heading(f"Figures at scale {data.runs.scale}", 1)
    return Page(made_from("the pictures beside it"), blocks(heading, said, shown))


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


def _captions(there: Collection[str]) -> dict[str, str]:
    """The captions of the existing pictures, the paper's first."""
    of_tables = {
        name: text.format(name.removeprefix(begins))
        for begins, text in OF_A_TABLE.items()
        for name in sorted(there)
        if name.startswith(begins)
    }
    return {name: text for name, text in (PICTURES | of_tables).items() if name in there}


def _pictures_shown(there: Collection[str]) -> tuple[Block, ...]:
    """Two of the existing pictures, and a link to all of them."""
    if not there:
        return ()
    captions = _captions(there)
    shown = [Picture(f"{FIGURES}/{name}.svg", captions[name]) for name in SHOWN if name in captions][:2]
    first = ", those of the paper first" if any(name.startswith("figure") for name in captions) else ""
    told = Text((f"{several(len(captions), 'picture')}{first}: ", FIGURES_LINK, "."))
    return Heading("Figures"), *shown, told
