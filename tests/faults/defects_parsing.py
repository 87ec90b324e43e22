"""Defects of parsing, and the tests that must notice them."""

from faults.defect import Defect

TREES, F1 = "repro/data/treebank.py", "repro/decoding/evalb.py"
OF_TREES, OF_F1 = "tests/data/test_treebank.py::test_", "tests/decoding/test_evalb.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "brackets are sets: the same twice counts once",
        F1,
        "found[SAME.get(category, category), place[begin], place[end]] += 1",
        "found[SAME.get(category, category), place[begin], place[end]] = 1",
        (f"{OF_F1}the_golden_example_to_the_last_count",),
    ),
    Defect(
        "parts of speech are brackets",
        F1,
        "    for label, begin, end in tree.brackets:\n",
        "    tags = [(leaf.tag, i, i + 1) for i, leaf in enumerate(tree.leaves)]\n"
        "    for label, begin, end in [*tree.brackets, *tags]:\n",
        (f"{OF_F1}the_golden_example_to_the_last_count",),
    ),
    Defect(
        "functions of labels are compared",
        F1,
        'label.partition("-")[0].partition("=")[0]',
        "label",
        (f"{OF_F1}the_golden_example_to_the_last_count",),
    ),
    Defect(
        "the tags found say what punctuation is",
        F1,
        "for leaf in wanted.leaves]",
        "for leaf in had.leaves]",
        (f"{OF_F1}by_hand",),
    ),
    Defect(
        "a mended tree loses the words that nobody wrote",
        TREES,
        "    leaves = map(Leaf, [*tags, *[UNTAGGED] * missing], words)\n",
        "    leaves = map(Leaf, tags, words)\n",
        (f"{OF_TREES}any_tokens_give_a_tree_whose_leaves_are_the_words",),
    ),
    Defect(
        "a tag that is a label closes a bracket",
        TREES,
        'form = {"open": "({}", "close": "){}", "leaf": "{}"}',
        'form = {"open": "{}", "close": "){}", "leaf": "{}"}',
        (f"{OF_TREES}a_true_line_comes_back_exactly",),
    ),
    Defect(
        "reading stops at what is no tree",
        TREES,
        "place = after.end() - 1 if after else None",
        "place = None",
        (f"{OF_TREES}reading_goes_on_after_what_is_no_tree",),
    ),
)
