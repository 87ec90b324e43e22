"""Defects of what is shown of a model's inside, each with the tests that notice it; some need Chromium."""

from faults.defect import Defect

OF_RUN, OF_PAGE = "tests/runs/test_inside.py::test_", "tests/web/test_inside.py::test_"
OF_TREE = "tests/decoding/test_observed.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "entropies of heads are those of the rounded weights",
        "repro/decoding/inside.py",
        "entropies(of).mean(-1)",
        "entropies(rounded_weights(of) / 255).mean(-1)",
        (f"{OF_RUN}what_is_kept_is_what_the_model_does",),
    ),
    Defect(
        "text that may not be given on is shown",
        "repro/runs/inside.py",
        "CORPORA[run.corpus.name].is_generated",
        "CORPORA[run.corpus.name].licence",
        (f"{OF_RUN}only_generated_text_is_shown_and_the_papers",),
    ),
    Defect(
        "the decoder reads the translation without its first symbol",
        "repro/decoding/inside.py",
        "[PAD, *found.ids][: max(1, len(written))]",
        "written",
        (f"{OF_RUN}what_is_kept_is_what_the_model_does",),
    ),
    Defect(
        "one hypothesis more lives in the tree than in the beam",
        "repro/decoding/observed.py",
        "if len(lived) < search.beam",
        "if len(lived) <= search.beam",
        (f"{OF_TREE}the_tree_by_hand", f"{OF_TREE}the_tree_is_that_of_the_search_to_the_bit[2-dtype1]"),
    ),
    Defect(
        "the tree takes the last of the translations that end, not the best",
        "repro/decoding/observed.py",
        "score_K[rank] > best",
        "score_K[rank] > -math.inf",
        (f"{OF_TREE}the_tree_is_that_of_the_search_to_the_bit[4-dtype1]",),
    ),
    Defect(
        "the queries of a word are summed, not averaged",
        "repro/web/assets/inside.js",
        "one / count[queries.of[q]]",
        "one",
        (f"{OF_PAGE}weights_are_those_of_the_file_by_token_and_by_word[cross]",),
    ),
    Defect(
        "arrows in the tree go to the first node, not to the parent",
        "repro/web/assets/inside.js",
        "undefined : nodes[at.node][0], ArrowRight",
        "undefined : 0, ArrowRight",
        (f"{OF_PAGE}the_tree_leads_by_arrows_and_says_its_numbers",),
    ),
)
