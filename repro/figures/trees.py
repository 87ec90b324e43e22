"""A tree that our parser found beside the gold one, with the brackets that are wrong marked. Paper: section 6.3.

A bracket is a bar over its words, with the brackets inside it below. Both trees thus have their words at the same
places and can be compared bar by bar. The sentence is our own, so no picture has words of anybody's treebank.
"""

from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path

from repro.data.treebank import Tree, bracketed, cleaned, mended, read_trees
from repro.decoding.evalb import count_brackets, wrong_brackets
from repro.decoding.search import Search
from repro.figures import style
from repro.figures.checkpoints import Whose, whose
from repro.figures.style import Axes, Figure
from repro.results.record import Record
from repro.runs.load import open_run

SENTENCE = (
    "(S (NP (NP (DT The) (JJ old) (NN teacher)) (SBAR (WHNP (WP who)) (S (VP (VBZ helps) (NP (PRP$ my) "
    "(NN sister)))))) (VP (VBD did) (RB not) (VP (VB close) (NP (DT the) (NN kitchen) (NN door)) (SBAR (IN because) "
    "(S (NP (PRP it)) (VP (VBD was) (ADJP (JJ old))))))) (. .))"
)
MEASURED, COMMAND = "tree.json", "python experiments/table4.py"
LEVEL, MARGIN = 17.0, 8.0  # points: from a bar to the one below it; around the drawing
LETTER = 4.6  # points: approximate width of a letter


class MeasuredTree(Whose):
    """The tree that a run found, and the gold tree."""

    gold: str  # in bracket notation
    found: str
    mended: int  # number of mendings that its output needed


def measure(records: Sequence[Record], runs: Path, cache: Path) -> MeasuredTree:
    """Parse the sentence with the only run in `records`, by the search of its record."""
    from repro.data.shards import Encoded
    from repro.decoding.translate import translate

    [run] = records
    trained, gold = open_run(runs / run.run, cache), tree_in(SENTENCE)
    source = Encoded(*trained.tokenizer.encode([" ".join(gold.words)]))
    [ids] = translate(trained.model, source, Search.of(run.settings))
    found = mended(trained.tokenizer.decode(ids), gold.words)
    return {
        **whose(run),
        "gold": bracketed(gold, "TOP"),
        "found": bracketed(found.tree, "TOP"),
        "mended": found.kinds.total(),
    }


def tree_in(text: str) -> Tree:
    """The single tree that `text` holds."""
    found = list(read_trees(text))
    if len(found) != 1 or not isinstance(found[0], Tree):
        raise ValueError(f"expected one tree in brackets, got {len(found)} in {text!r}.")
    return cleaned(found[0]) or found[0]


def draw_tree(to: Path, measured: MeasuredTree) -> list[Path]:
    """Draw the two trees."""
    gold, found = tree_in(measured["gold"]), tree_in(measured["found"])
    height = sum(tree.depth for tree in (gold, found)) * LEVEL + 3.2 * LEVEL + 4 * MARGIN + 20
    size = (style.WIDTH, height / 72)
    return [style.save_figure(to, "parse_tree", size, partial(paint_trees, gold=gold, found=found, measured=measured))]


def paint_trees(figure: Figure, *, gold: Tree, found: Tree, measured: MeasuredTree) -> None:
    """Paint the found tree above, the gold one below."""
    missed, wrong = wrong_brackets(gold, found)
    counts = count_brackets(gold, found)
    axes = style.canvas(figure)
    top = 72 * figure.get_size_inches()[1] - MARGIN
    top = _paint(axes, found, top, "found; wrong brackets in orange", wrong)
    _paint(axes, gold, top - 2 * MARGIN, "gold; what was not found in orange", missed)
    style.note(
        figure,
        f"Scale {measured['scale']}, row {measured['row']}, seed {measured['seed']}, run {measured['run']}: of "
        f"{counts.found} brackets {counts.matched} are right, of {counts.gold} {counts.matched} found; "
        f"F1 {counts.f1:.1f}",
    )


def _paint(axes: Axes, tree: Tree, top: float, title: str, marked: Container[int]) -> float:
    """Paint one tree below `top`; returns the height of its words."""
    width = 72 * style.WIDTH - 2 * MARGIN
    letters = [max(3, len(word)) + 1 for word in tree.words]
    scale = min(LETTER + 2, width / sum(letters))
    ends = [MARGIN]
    for n in letters:
        ends.append(ends[-1] + n * scale)
    axes.text(MARGIN, top, title, va="top", fontsize=9, color=style.SOFT)
    top -= 1.6 * LEVEL
    around: list[int] = []
    for i, (label, begin, end) in enumerate(tree.brackets):
        while around and around[-1] <= begin:
            around.pop()
        y, colour = top - len(around) * LEVEL, style.COLOURS[2] if i in marked else style.INK
        around.append(end)
        left, right = ends[begin] + 1.5, ends[end] - 1.5
        axes.plot([left, right], [y, y], color=colour, linewidth=2.2 if i in marked else 1.2)
        axes.text((left + right) / 2, y + 1.5, label, ha="center", va="bottom", fontsize=7.5, color=colour)
    words = top - tree.depth * LEVEL
    for word, left, right in zip(tree.words, ends, ends[1:], strict=False):
        axes.text((left + right) / 2, words, word, ha="center", va="bottom", fontsize=9)
    return words
