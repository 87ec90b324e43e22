"""results/<scale>/README.md: tables, verdicts and figures of one scale on one page. Paper: sections 4 and 6."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from repro.claims.decisions import Outcome
from repro.claims.judge import OUTCOMES, Judged
from repro.pages import outputs_2017, table1, table2, table3
from repro.pages.claims import NAME as CLAIMS
from repro.pages.claims import agreement, differing, exploration, promise, settles, sizes_here
from repro.pages.columns import ABOUT_FOUND, found
from repro.pages.scale_data import ScaleData, printed_of
from repro.pages.words import departure_notes, explained_table, told_at_the_end
from repro.render.origin import made_from
from repro.render.page import (
    Block,
    Code,
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
)
from repro.render.several import several
from repro.results.frame import FIGURES, DataFrame
from repro.results.places import PUBLISHED, RETIRED

NAME = "README"
PICTURES = {  # name of the file -> what it shows; the paper's figures first, then ours
    "figure1_architecture": "The architecture, drawn from the modules of the model (figure 1)",
    "figure2_attention": "Scaled dot-product and multi-head attention, from the operations executed (figure 2)",
    "figure3_long_distance": "What the heads of the second-to-last encoder layer see from “making” (figure 3), in "
    "the paper's sentence, which is unlike the text that this model was trained on",
    "figure4_sharp_heads": "The two heads that are sharpest at “its” of the paper's sentence (figure 4)",
    "figure5_different_heads": "The two heads that differ most on the paper's sentence (figure 5)",
    "figure3_long_distance_own": "The same layer on a sentence of the model's own text",
    "figure4_sharp_heads_own": "The two heads that are sharpest at a word of that sentence",
    "figure5_different_heads_own": "The two heads that differ most on that sentence",
    "alignment": "Where each layer of the decoder looks in that sentence while it is translated (section 3.2.3)",
    "positional_encoding": "Positional encoding (section 3.5)",
    "learning_rate": "The learning rate over the updates (section 5.3)",
    "softmax_saturation": "What dividing by √d_k prevents (section 3.2.1)",
    "mask": "Scores of six words, what the mask leaves of them, and the softmax of that (section 3.2.3)",
    "norms": "Which cells of a batch share a mean: layer and batch normalisation (section 3.1)",
    "softmax_of_unequal": "The softmax of two equal scores and one twice as large, and its Jacobian",
    "position_codes": "Position codes, and how similar that of one position is to those around it",
    "where_the_source_enters": "Three decoders unrolled: where the source enters each of them",
    "soft_alignment": "Where soft alignment looks while it translates, beside the base's mean head (section 3.2.3); "
    "the paper's own sentences are unlike what these models were trained on, and their translations are poor",
    "source_gradients": "Which positions of the source the first word written depends on, in three systems",
    "activations": "Mean and variance of the activations between sub-layers, with norms and without (section 3.1)",
    "head_similarity": "How similar the heads of our base model are on the sentences that its runs kept, within a "
    "layer and between layers (section 3.2.2)",
    "differences": "Each row of Table 3 against the base, beside what the paper prints. Each interval is of one row by "
    "itself, at 95 %; verdicts ask for wider ones, since they are many, so one that leaves out 0 may be undetermined",
    "parse_tree": "One sentence of ours as our parser brackets it, and its gold tree; Table 4 says how well it parses",
    "quality_and_cost": "Quality against the cost of training",
    "text_sizes": "What rows are worth on little text and on much, with equal updates: each less the base of the same "
    "text and seed, from three seeds on with its 95 % interval; above 0 the row is better",
}
SHOWN = ("differences", "text_sizes", "quality_and_cost")  # the page of the scale shows the first two that exist
ELSEWHERE = {
    table1.NAME: "Table 1: layers",
    outputs_2017.NAME: "Published translations of newstest2017",
}  # not of one scale
FIGURES_LINK = Link(f"{FIGURES}.md", FIGURES, to_page=True)
OF_A_TABLE = {  # by the prefix of the file's name, which ends with the table's name
    "curves_": "How the rows of {} learned",
    "operations_": "Dev loss of the rows of {} over updates and over FLOPs of training",
    "fading_": "BLEU of the rows of {} by the length of the source and by the position in the translation",
}


def page(
    data: ScaleData,
    frame: DataFrame | None,
    pages: Sequence[str],
    pictures: Collection[str],
    *,
    anchor: Sequence[Block] = (),
    tables: Mapping[str, Page],
) -> Page:
    """The page of one scale: findings, Table 3, links to the other pages, two pictures, and how it was judged.

    `frame` is Table 3, and `anchor` what the runs of a published recipe show. The signs in the pages of `tables` are
    explained here, once. For exploration the findings of each table are listed too, since there are no verdicts.
    """
    runs, judged = data.runs, () if data.is_exploration else data.judged
    apart = {name: of for name, of in tables.items() if frame is None or not name.startswith(table3.NAME)}
    return Page(
        made_from("the records beside it"),
        told_at_the_end(
            blocks(
                Heading((Emphasis("Attention Is All You Need"), f" at scale {runs.scale}"), 1),
                Text(_agreement(data).rstrip()),
                _outcomes(judged),
                Text(
                    (
                        f"{several(runs.n, 'run')} of {several(runs.n_rows, 'row')}, {' '.join(runs.took)} in all. ",
                        *_standing(data),
                    )
                ),
                _found_in(apart) if data.is_exploration else (),
                anchor,
                _table3(frame, judged) if frame is not None else (),
                _pictures_shown(pictures, runs.scale, data.result_set.own),
                Heading("Tables"),
                Listing(tuple(_links(pages, tables, runs.scale, frame is not None))),
                () if data.is_exploration else _how_judged(data),
                _departures(frame) if frame is not None else (),
            ),
            tables.values(),
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
    shown = [Picture(f"{FIGURES}/{name}.svg", text) for name, text in _captions(pictures).items()]
    heading = Heading(f"Figures at scale {data.runs.scale}", 1)
    said = Text((_agreement(data), *_standing(data)))
    return Page(made_from("the pictures beside it"), blocks(heading, said, shown)) if shown else None


def _agreement(data: ScaleData) -> str:
    """A sentence on how our differences agree with the printed ones; empty for exploration."""
    return "" if data.is_exploration else f"{agreement(data.evidence, printed_of(data.result_set))} ".lstrip()


def _standing(data: ScaleData) -> Words:
    """What the runs may show; if none is evidence, or they are too few for every claim, only that."""
    if data.is_exploration:
        return "All of it is ", Strong("exploration"), ": no run counts as evidence, so nothing is settled here."
    if not settles(data.judged):
        return ("No claim about trained rows has all the runs that it needs, so nothing is settled here.",)
    return "A page of this scale shows ", Strong(data.runs.claim), ", and says so where the paper claims more."


def _outcomes(judged: Sequence[Judged]) -> Listing:
    """The judged claims about trained rows, by outcome; undecided ones are only counted."""
    said: dict[Outcome, list[str]] = {outcome: [] for outcome in OUTCOMES if outcome != "not judged"}
    for one in judged:
        if one.claim.is_trained and one.verdict in said:
            said[one.verdict].append(one.sentence)
    return Listing(
        tuple(
            (Strong(outcome), f", {several(len(claims), 'claim')}: {'; '.join(claims)}.")
            for outcome, claims in said.items()
            if claims
        )
    )


def _how_judged(data: ScaleData) -> tuple[Block, ...]:
    """How far the verdicts may be trusted, and which runs do not enter them."""
    return blocks(
        Heading("How it was judged"),
        Text(promise(data.judged, data.runs.scale, data.published)),
        differing(data.judged),
        exploration(data.evidence),
        Text(sizes_here(data.runs)),
        Text(("Each claim with its estimate beside the print: ", Link(f"{CLAIMS}.md", CLAIMS, to_page=True), ".")),
    )


def _table3(frame: DataFrame, judged: Sequence[Judged]) -> tuple[Block, ...]:
    lines = found(frame)
    table = explained_table(table3.page_columns(frame, judged)[0])
    return blocks(Heading("Table 3"), lines, table, Text(ABOUT_FOUND if lines.items else ""))


def _departures(frame: DataFrame) -> tuple[Block, ...]:
    more = Link(f"{table3.NAME}.md", table3.NAME, to_page=True)
    return blocks(
        Heading("What departs from the paper's recipe"),
        departure_notes(frame),
        Text(("What the rows change, notes, and how reproducible the runs are: ", more, ".")),
    )


def _links(pages: Sequence[str], tables: Mapping[str, Page], scale: str, has_table3: bool) -> Iterable[Words]:
    """Links to the tables by subject, the paper's first, and the command for the one missing beside Table 3."""
    groups: dict[str, list[Link]] = {"The paper's": [], "Ours": []}
    for page in pages:
        name = page.rpartition("/")[2]
        title = tables[name].title.removesuffix(f" at scale {scale}") if name in tables else ELSEWHERE[name]
        groups["The paper's" if name.startswith("table") else "Ours"].append(Link(title, page, to_page=True))
    for whose, links in groups.items():
        if links:
            yield (
                Strong(whose),
                ": ",
                *joined([(link,) for link in sorted(links, key=lambda link: link.text)], "; "),
                ".",
            )
    if has_table3 and table2.NAME not in pages and scale not in RETIRED:
        yield (f"{table2.NAME}: no runs at this scale; ", Code(f"python experiments/{table2.NAME}.py --scale {scale}"))
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


def _pictures_shown(there: Collection[str], scale: str, is_own: bool) -> tuple[Block, ...]:
    """Two of the existing pictures, and a link to all of them."""
    captions = _captions(there)
    if not captions:
        where = "" if is_own else f"--results-dir {PUBLISHED} "
        return Heading("Figures"), Text(
            ("None yet: ", Code(f"python experiments/figures.py {where}--scale {scale}"), " draws them.")
        )
    shown = [Picture(f"{FIGURES}/{name}.svg", captions[name]) for name in SHOWN if name in captions][:2]
    told = Text((f"{several(len(captions), 'picture')}, those of the paper first: ", FIGURES_LINK, "."))
    return Heading("Figures"), *shown, told
