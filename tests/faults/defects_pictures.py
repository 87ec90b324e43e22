"""Defects of the pictures of what systems do inside, each with the tests that notice it."""

from faults.defect import Defect

OF_ALIGNMENTS, ALIGNMENTS = "tests/figures/test_alignments.py::test_", "repro/figures/alignments.py"
OF_ACTIVATIONS, ACTIVATIONS = "tests/figures/test_activations.py::test_", "repro/figures/activations.py"
OF_GRADIENTS, GRADIENTS = "tests/figures/test_source_gradients.py::test_", "repro/figures/source_gradients.py"
OF_CHECKPOINTS, CHECKPOINTS = "tests/figures/test_checkpoints.py::test_", "repro/figures/checkpoints.py"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the pieces of a word that looks are summed",
        "repro/figures/attention_maps.py",
        "(looks / looks.sum(0)).T",
        "looks.T",
        ("tests/figures/test_attention_maps.py::test_keys_are_summed_and_queries_averaged",),
    ),
    Defect(
        "words of the source are merged as those of the translation are",
        ALIGNMENTS,
        'told["target"]["of"], told["source"]["of"])',
        'told["target"]["of"], [*range(weights["cross"].shape[-1])])',
        (f"{OF_ALIGNMENTS}a_row_is_a_word_and_its_entropy_that_of_the_row",),
    ),
    Defect(
        "the entropy beside a row is the mean of those of its heads",
        ALIGNMENTS,
        "return entropies(self.weights)",
        "return np.asarray(entropies(self.heads).mean((0, 1)))",
        (f"{OF_ALIGNMENTS}a_row_is_a_word_and_its_entropy_that_of_the_row",),
    ),
    Defect(
        "alignments of two systems stand on other sources",
        ALIGNMENTS,
        "{(one.about, *one.source): one for one in theirs}",
        "{(one.about, *own[0].source): one for one in theirs}",
        (f"{OF_ALIGNMENTS}the_lowest_seed_is_held_against_a_base_of_the_same",),
    ),
    Defect(
        "any soft alignment is taken, whatever its score",
        ALIGNMENTS,
        "if record.row == ROW]",
        "if record.row.startswith(ROW)]",
        (f"{OF_ALIGNMENTS}the_lowest_seed_is_held_against_a_base_of_the_same",),
    ),
    Defect(
        "the first system stands on both sides",
        ALIGNMENTS,
        "            _paint_weights(axes, one)",
        "            _paint_weights(axes, pair[0])",
        (f"{OF_ALIGNMENTS}each_matrix_is_its_systems_and_no_two_labels_touch[3-2]",),
    ),
    Defect(
        "padding counts among the activations",
        ACTIVATIONS,
        "x[real[stack]].double()",
        "x.double()",
        (f"{OF_ACTIVATIONS}each_moment_is_that_of_the_tokens_after_a_sub_layer[post-norm]",),
    ),
    Defect(
        "activations are taken with dropout",
        ACTIVATIONS,
        "watched_stream(model.eval())",
        "watched_stream(model.train())",
        (f"{OF_ACTIVATIONS}each_moment_is_that_of_the_tokens_after_a_sub_layer[no norm]",),
    ),
    Defect(
        "layers stay watched",
        ACTIVATIONS,
        "            layer.around = around\n",
        "            pass\n",
        (f"{OF_ACTIVATIONS}the_stream_of_pre_norm_is_the_sum_and_nothing_is_left_behind",),
    ),
    Defect(
        "the first weights are those of another seed",
        ACTIVATIONS,
        "trained.tokenizer.size, record.seed, system)",
        "trained.tokenizer.size, 1, system)",
        (f"{OF_ACTIVATIONS}first_are_the_weights_that_the_seed_draws_and_last_those_of_the_run",),
    ),
    Defect(
        "the decoder reads the first token whose loss is taken",
        GRADIENTS,
        "source.new_full((len(source), 1), PAD)",
        "first[:, None]",
        (f"{OF_GRADIENTS}a_gradient_is_what_a_small_change_of_the_embedding_does_to_the_loss[Simple]",),
    ),
    Defect(
        "gradients of sentences of all lengths are mixed",
        GRADIENTS,
        "source.lengths == length)",
        "source.lengths <= length)",
        (f"{OF_GRADIENTS}sentences_of_one_length_and_the_first_token_of_their_references",),
    ),
    Defect(
        "a share is of the sum over all sentences",
        GRADIENTS,
        "norms.sum(1, keepdims=True)",
        "norms.sum()",
        (f"{OF_GRADIENTS}the_numbers_beside_the_picture",),
    ),
    Defect(
        "runs of other text stand beside each other",
        CHECKPOINTS,
        "for other in found[:1])",
        "for other in found[:0])",
        (f"{OF_CHECKPOINTS}the_lowest_seed_whose_checkpoints_are_here_and_a_base_of_the_same_text",),
    ),
    Defect(
        "what was measured of one run is shown as another's",
        CHECKPOINTS,
        'if records and (kept is None or [one["run"] for one in kept["runs"]] != [record.run for record in records]):',
        "if records and kept is None:",
        (f"{OF_CHECKPOINTS}runs_are_measured_once_and_others_anew",),
    ),
    Defect(
        "processes that draw outlive a command that is killed",
        "repro/storage/process_pool.py",
        "        os._exit(1)\n",
        "        pass\n",
        ("tests/storage/test_process_pool.py::test_none_outlives_a_command_that_is_killed",),
    ),
    Defect(
        "a figure is drawn twice for its file",
        "repro/figures/style.py",
        "    if isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine):",
        "    if False:",
        ("tests/figures/test_style.py::test_a_figure_is_drawn_once",),
    ),
    Defect(
        "lines of other colours have the same dashes and marker",
        "repro/figures/style.py",
        "MARKERS[at ^ SHIFTS[lap]]",
        "MARKERS[at ^ lap]",
        ("tests/figures/test_style.py::test_of_sixty_four_lines_no_two_look_the_same_in_colour_or_in_grey",),
    ),
    Defect(
        "a small panel has a scale of its own",
        "repro/figures/style.py",
        "small = bool(of[0][0].name)\n    left, right",
        "small = False\n    left, right",
        (
            "tests/figures/test_style.py::"
            "test_of_more_rows_than_can_be_told_apart_each_group_has_panels_with_the_base_in_grey",
        ),
    ),
    Defect(
        "a bar of BLEU by thirds reaches below zero",
        "repro/results/frame.py",
        "return half_width if half_width is not None and half_width <= mean else None",
        "return half_width",
        ("tests/figures/test_fading.py::test_bars_are_what_the_tables_show_of_the_spread",),
    ),
    Defect(
        "the name of the base stands where other names left room",
        "repro/figures/quality.py",
        "key=lambda point: (point.table != BASE, point.mean)",
        "key=lambda point: point.mean",
        ("tests/figures/test_quality.py::test_the_name_of_the_base_stands_next_to_its_point",),
    ),
)
