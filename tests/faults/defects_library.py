"""Defects of the suite as it is called from Python, each with the tests that notice it."""

from faults.defect import Defect

OF_LIBRARY = "tests/test_library.py::test_"
OF_LONG_LINES = (
    "tests/cli/test_decode.py::test_a_line_that_ctranslate2_has_no_place_for_is_named_before_anything_is_translated[{}]"
)

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the score of a sentence counts its padding",
        "repro/runs/use.py",
        "of_token.masked_fill(target == PAD, 0.0).sum(-1)",
        "of_token.sum(-1)",
        (f"{OF_LIBRARY}scores_of_a_sentence_do_not_depend_on_its_company",),
    ),
    Defect(
        "scores come in the order of the batches",
        "repro/runs/use.py",
        "found[batch.sentence] = ",
        "found[: len(batch.sentence)] = ",
        (f"{OF_LIBRARY}scores_are_sums_of_log_probabilities_sentence_by_sentence",),
    ),
    Defect(
        "attention reads the target without the shift",
        "repro/runs/use.py",
        "read = [PAD, *written[:-1]]",
        "read = written",
        (f"{OF_LIBRARY}attention_is_that_of_the_model_and_names_its_tokens",),
    ),
    Defect(
        "heads count from 0",
        "repro/runs/use.py",
        "self.weights[part, layer][int(head) - 1]",
        "self.weights[part, layer][int(head) % len(self.weights[part, layer])]",
        (f"{OF_LIBRARY}attention_is_that_of_the_model_and_names_its_tokens",),
    ),
    Defect(
        "a table from Python says dev where it means test",
        "repro/cli/library.py",
        'for split in ("dev", "test") for end in ("", "_half_width")',
        'for split in ("dev", "dev") for end in ("", "_half_width")',
        (f"{OF_LIBRARY}a_table_has_the_numbers_of_its_csv",),
    ),
    Defect(
        "the second row of a program hides the first",
        "repro/results/frame.py",
        "renewed = {of for of, _ in rows if of != PROGRAM}",
        "renewed = {of for of, _ in rows}",
        (f"{OF_LIBRARY}rows_of_a_program_stand_in_one_table_in_the_order_of_their_first_runs",),
    ),
    Defect(
        "each row of a program is the first",
        "repro/results/frame.py",
        "places.get(row, 1 + max(places.values(), default=-1))",
        "places.get(row, 0)",
        (f"{OF_LIBRARY}rows_of_a_program_stand_in_one_table_in_the_order_of_their_first_runs",),
    ),
    Defect(
        "any system that fits the weights is that of a run",
        "repro/runs/load.py",
        '(text := system_text(given)) != (run.system or "")',
        '(text := system_text(given)) != (run.system or "") and run.system is None',
        (f"{OF_LIBRARY}a_system_of_a_program_is_opened_with_the_class_that_made_it",),
    ),
    Defect(
        "what a module imports from its own package is not in the fingerprint",
        "repro/results/provenance.py",
        "(_absolute(node, package), alias.name)",
        '(node.module or "", alias.name)',
        ("tests/runs/test_system.py::test_the_fingerprint_covers_a_package_and_what_it_imports_from_itself",),
    ),
    Defect(
        "a class of a notebook counts as unchanged",
        "repro/results/systems.py",
        'if part.__module__ == "__main__" and not (file and Path(file).is_file()):',
        'if part.__module__ == "__main__" and False:',
        ("tests/runs/test_system.py::test_a_class_that_was_typed_in_is_refused",),
    ),
    Defect(
        "a program is left with the signals of a run",
        "repro/runs/signals.py",
        "        for number, handler in self._before.items():\n            signal.signal(number, handler)\n",
        "        pass\n",
        (f"{OF_LIBRARY}signals_do_afterwards_what_they_did_before",),
    ),
    Defect(
        "a line that fits alone has no room for what a search may write",
        "repro/runs/use.py",
        '"line", extra=search.extra, numbers=numbers',
        '"line", numbers=numbers',
        (OF_LONG_LINES.format("words0-at most 4,046 tokens in a line, as CTranslate2 is given 4,096 places and a "),),
    ),
    Defect(
        "a line that is too long is counted without blank ones",
        "repro/runs/use.py",
        '"line", extra=search.extra, numbers=numbers',
        '"line", extra=search.extra',
        (OF_LONG_LINES.format("words0-at most 4,046 tokens in a line, as CTranslate2 is given 4,096 places and a "),),
    ),
)
