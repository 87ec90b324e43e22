"""Defects of what is shown of a model's inside, each with the tests that notice it; some need Chromium."""

from faults.defect import Defect

OF_RUN, OF_PAGE = "tests/runs/test_inside.py::test_", "tests/web/test_inside.py::test_"
OF_OWN = "tests/figures/test_own_sentence.py::test_"
OF_HEADS, OF_DECODERS = "tests/figures/test_likeness.py::test_", "tests/figures/test_decoders.py::test_"
OF_TREE = "tests/decoding/test_observed.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the sweep looks inside the models, while others are trained",
        "repro/runs/execution.py",
        "            note_inside(self, done, tell)  # a reader",
        "            # a reader",
        ("tests/runs/test_run.py::test_who_makes_a_run_looks_inside_it",),
    ),
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
        "a damaged file hides the whole one of another seed",
        "repro/web/inside.py",
        "is_inside_of(path(results, one), one.run)",
        "inside_file(path(results, one)).exists()",
        (f"{OF_PAGE}a_seed_with_a_whole_file_stands_for_one_with_a_damaged_file",),
    ),
    Defect(
        "arrows in the tree go to the first node, not to the parent",
        "repro/web/assets/inside.js",
        "undefined : nodes[at.node][0], ArrowRight",
        "undefined : 0, ArrowRight",
        (f"{OF_PAGE}the_tree_leads_by_arrows_and_says_its_numbers",),
    ),
    Defect(
        "heads whose weights are large are more alike",
        "repro/figures/likeness.py",
        "rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)",
        "rows = rows / np.linalg.norm(rows)",
        (f"{OF_HEADS}the_cosine_of_each_pair_is_the_mean_over_sentences",),
    ),
    Defect(
        "pairs of one layer are taken for pairs of two",
        "repro/figures/likeness.py",
        "(layer[first] == layer[second]) == same",
        "(layer[first] == layer[second]) != same",
        (f"{OF_HEADS}pairs_of_one_layer_and_pairs_of_two",),
    ),
    Defect(
        "a word at the edge looks farther because the others are far",
        "repro/figures/own_sentence.py",
        ".sum(-1) - apart.mean(-1)",
        ".sum(-1)",
        (f"{OF_OWN}the_word_that_looks_farther_than_an_even_share_is_asked",),
    ),
    Defect(
        "the paper's sentence is taken for the model's own",
        "repro/figures/own_sentence.py",
        'told["about"] not in NAMES_OF_PAPER.values() and ',
        "",
        (f"{OF_OWN}the_first_own_sentence_of_the_lowest_seed_is_shown",),
    ),
    Defect(
        "an alignment is of the layer below",
        "repro/figures/own_sentence.py",
        "axes.imshow(weights[layer - 1]",
        "axes.imshow(weights[layer - 2]",
        (f"{OF_OWN}a_row_of_the_alignment_is_a_piece_of_the_translation",),
    ),
    Defect(
        "what came into the first state counts at every step",
        "repro/figures/decoders.py",
        "own=tuple(part.detach() for part in state.own)",
        "own=state.own",
        (f"{OF_DECODERS}a_simple_decoder_has_the_last_state_and_nothing_after",),
    ),
    Defect(
        "alignments stand in the wrong order",
        "repro/model/rivals/attention_rnn.py",
        "torch.stack(rows, dim=2)",
        "torch.stack(rows[::-1], dim=2)",
        ("tests/model/rivals/test_attention_rnn.py::test_the_recursion_by_its_equations[SoftAlignment]",),
    ),
    Defect(
        "the weights of a sentence are read from those of the first",
        "repro/results/inside.py",
        "            begin = end\n",
        "",
        (f"{OF_RUN}what_is_kept_is_what_the_model_does",),
    ),
    Defect(
        "an answer calls worse what is better",
        "repro/pages/statements.py",
        'return "Worse" if is_right == part.is_worse else "Better"',
        'return "Worse" if is_right else "Better"',
        ("tests/pages/test_statements.py::test_a_statement_that_says_better_turns_the_word",),
    ),
    Defect(
        "lines of a picture are of other thirds",
        "repro/figures/fading.py",
        "part[name] for part in whole) for name in THIRDS)",
        "part[name] for part in whole) for name in THIRDS[::-1])",
        ("tests/figures/test_fading.py::test_a_line_is_the_values_of_its_runs_and_rows_without_counts_have_none",),
    ),
    Defect(
        "losses of trees stand beside the loss of translations",
        "repro/figures/draw.py",
        "if any(record.about == other.about for other in of(table))",
        "if of(table)",
        ("tests/figures/test_draw.py::test_trees_are_not_held_against_translations",),
    ),
)
