"""Defects of the list of claims, of its hash and of what settles claims without a run."""

from faults.defect import Defect

SPELLING, OF_SPELLING = "repro/claims/spelling.py", "tests/claims/test_spelling.py::test_"
TESTED, OF_TESTED = "repro/claims/tested.py", "tests/claims/test_tested.py::test_"
LAYERS, OF_LAYERS = "repro/claims/layers.py", "tests/pages/test_table1.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the hash of the list leaves out the margins",
        "repro/claims/lists.py",
        '"note", "decimals"})',
        '"note", "decimals", "margin"})',
        (f"{OF_SPELLING}every_bound_of_a_score_is_in_the_hash",),
    ),
    Defect(
        "the hash of the list leaves out what must hold for a claim",
        "repro/claims/lists.py",
        '"note", "decimals"})',
        '"note", "decimals", "needs"})',
        (f"{OF_SPELLING}every_field_that_decides_is_in_the_hash[needs]",),
    ),
    Defect(
        "the hash of the list takes what is computed by its name",
        SPELLING,
        "        return function(value)",
        "        return value.__name__",
        (
            f"{OF_SPELLING}what_is_computed_is_in_the_hash",
            f"{OF_SPELLING}a_printed_number_that_is_asked_is_in_the_hash",
        ),
    ),
    Defect(
        "the hash of the list ends at the first function",
        SPELLING,
        "waiting += [value] * value.__module__.startswith",
        "waiting += [] * value.__module__.startswith",
        (f"{OF_SPELLING}what_is_computed_is_in_the_hash",),
    ),
    Defect(
        "mending a word makes all records exploration",
        "repro/claims/lists.py",
        'WORDS = frozenset({"where", "sentence", ',
        'WORDS = frozenset({"where", ',
        (f"{OF_SPELLING}no_word_is_in_the_hash[sentence]",),
    ),
    Defect(
        "mending a reason makes all records exploration",
        SPELLING,
        "        node.args = node.args[:1]",
        "        pass",
        (f"{OF_SPELLING}the_reason_of_a_verdict_is_words",),
    ),
    Defect(
        "a claim holds although its tests were not run",
        TESTED,
        'if any(outcomes.get(test) != "passed" for test in claim.tests):',
        'if any(outcomes.get(test, "passed") != "passed" for test in claim.tests):',
        (f"{OF_TESTED}a_claim_holds_where_all_its_tests_passed",),
    ),
    Defect(
        "a test counts as passed when one of its cases did",
        TESTED,
        '    if cases["failure"] or cases["error"]:',
        '    if (cases["failure"] or cases["error"]) and not cases["passed"]:',
        (f"{OF_TESTED}exactly_the_named_tests_are_run",),
    ),
    Defect(
        "outcomes of tests stay although the code that they tested is another",
        TESTED,
        "parts = [syntax(own), *(syntax(ast.parse(path.read_bytes())) for path in _imported(tree, root))]",
        "parts = [syntax(own)]",
        (f"{OF_TESTED}a_run_is_old_when_the_test_or_what_its_file_imports_is_another",),
    ),
    Defect(
        "self-attention is called cheaper where n < d without lengths beyond d / 2",
        LAYERS,
        "    if reach > 1 / 2 and not lacking:",
        "    if reach > 1 / 4 and not lacking:",
        (f"{OF_LAYERS}where_the_lengths_do_not_go_beyond_half_of_d_nothing_is_said",),
    ),
    Defect(
        "self-attention is called cheaper than recurrence without the compiled one",
        LAYERS,
        'RECURRENCES = ("recurrent", "library_recurrent", "gated", "library_gated")',
        'RECURRENCES = ("recurrent", "gated", "library_gated")',
        (
            f"{OF_LAYERS}a_claim_that_does_not_hold_is_said_not_to",
            f"{OF_LAYERS}without_the_librarys_recurrence_nothing_is_said",
        ),
    ),
    Defect(
        "costs of the same order must be equal",
        LAYERS,
        "SAME_ORDER = 10.0",
        "SAME_ORDER = 1.05",
        (f"{OF_LAYERS}every_claim_holds_where_it_is_true",),
    ),
    Defect(
        "one size in a hundred is decided against by chance",
        "repro/claims/growth.py",
        "(1 - CONFIDENCE) / sizes)",
        "1 - CONFIDENCE)",
        (
            f"{OF_LAYERS}the_more_sizes_are_asked_the_surer_one_must_be_against_them_all",
            f"{OF_LAYERS}of_sizes_at_which_nothing_differs_one_is_seldom_decided_against",
        ),
    ),
    Defect(
        "a claim names the sizes of the other row",
        "repro/claims/claim.py",
        "return filled(self.template, hypers[better], hypers[worse])",
        "return filled(self.template, hypers[worse], hypers[better])",
        ("tests/claims/test_sizes.py::test_which_row_is_which",),
    ),
    Defect(
        "the compiled recurrence is not timed",
        "repro/complexity/measure.py",
        '{"library_recurrent": nn.RNN(d, d, batch_first=True), "library_gated": nn.GRU(d, d, batch_first=True)}',
        '{"library_gated": nn.GRU(d, d, batch_first=True)}',
        ("tests/complexity/test_measure.py::test_all_of_it_survives_the_file",),
    ),
)
