"""Defects of the pictures of what systems do inside, each with the tests that notice it."""

from faults.defect import Defect

OF_ALIGNMENTS, ALIGNMENTS = "tests/figures/test_alignments.py::test_", "repro/figures/alignments.py"

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
)
