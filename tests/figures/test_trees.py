"""The tree that was found beside its gold one: what is wrong is marked, and nothing else."""

from pathlib import Path

from matplotlib.figure import Figure

from repro.figures import style, trees
from repro.figures.trees import MeasuredTree, draw_tree, tree_in

FOUND = trees.SENTENCE.replace("(NP (NP (DT The) (JJ old) (NN teacher))", "(PP (NP (DT The) (JJ old) (NN teacher))")
MEASURED: MeasuredTree = {
    "run": "0123456789abcdef",
    "row": "WSJ only",
    "seed": 1,
    "scale": "smoke",
    "corpus": "grammar_trees",
    "pair": "en-tree",
    "commit": "12" * 20,
    "gold": trees.SENTENCE,
    "found": FOUND,
    "mended": 0,
}


def marked(found: str) -> list[str]:
    """The texts that stand in the colour of what is wrong, and the caption."""
    texts: list[str] = []

    def paint(figure: Figure) -> None:
        trees.paint_trees(figure, gold=tree_in(trees.SENTENCE), found=tree_in(found), measured=MEASURED)
        texts.extend(text.get_text() for text in figure.axes[0].texts if text.get_color() == style.COLOURS[2])
        texts.append(figure.texts[0].get_text())

    style.svg((style.WIDTH, 5), paint)
    return texts


def test_a_bracket_of_another_name_is_marked_in_both_trees_and_no_other_is() -> None:
    *wrong, caption = marked(FOUND)
    assert wrong == ["PP", "NP"]
    assert caption.endswith("of 16 brackets 15 are right, of 16 15 found; F1 93.8")
    assert marked(trees.SENTENCE)[:-1] == []


def test_it_is_drawn_to_the_same_bytes(tmp_path: Path) -> None:
    files = draw_tree(tmp_path / "one", MEASURED)
    again = draw_tree(tmp_path / "two", MEASURED)
    assert [file.name for file in files] == ["parse_tree.svg"]
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]
