"""Defects of what tables and pages show of a row, each with the tests that notice it."""

from faults.defect import Defect

LABELS, OF_LABELS = "repro/results/labels.py", "tests/results/test_labels.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the paper's parameters stand as those of the model here",
        LABELS,
        'Column(SIZE, "here", numbers(frame["params/here"] / 1e6, ".2f"))',
        'Column(SIZE, "here", numbers(frame["params/paper_size"] / 1e6, ".2f"))',
        (
            f"{OF_LABELS}a_page_shows_both_sizes_of_a_row_and_both_counts",
            f"{OF_LABELS}table_3_on_one_page_and_the_page_of_the_scale_show_them",
            f"{OF_LABELS}table_2_shows_them",
        ),
    ),
    Defect(
        "a row's name alone stands over another value",
        LABELS,
        'return f"{named[0]} (here {setting(value)})" if is_other else named[0]',
        "return named[0]",
        (
            f"{OF_LABELS}a_name_that_says_another_value_than_stands_here_is_followed_by_it",
            f"{OF_LABELS}latex_the_sheet_and_the_terminal_show_them",
            f"{OF_LABELS}figures_name_rows_alike",
            f"{OF_LABELS}a_dry_run_names_both_counts",
        ),
    ),
    Defect(
        "a setting here without that at the paper's size",
        LABELS,
        'else f"{setting(here)} ({setting(paper)})"',
        "else setting(here)",
        (f"{OF_LABELS}a_page_shows_both_sizes_of_a_row_and_both_counts", f"{OF_LABELS}table_2_shows_them"),
    ),
    Defect(
        "what a row changes is that of the base",
        "repro/runs/table.py",
        "at_paper_size = vars(row.change(BASE))",
        "at_paper_size = vars(BASE)",
        (f"{OF_LABELS}a_page_shows_both_sizes_of_a_row_and_both_counts",),
    ),
    Defect(
        "a verdict does not say what the paper's sizes are here",
        "repro/claims/judge.py",
        'others = ", ".join(text for row, text in named.items() if text != row)',
        'others = ""',
        (f"{OF_LABELS}verdicts_say_what_the_sizes_of_their_claims_are_here",),
    ),
    Defect(
        "a bound without the score it is of",
        "repro/claims/judge.py",
        'if outcomes <= {"not judged", "unstable"} and len({*reasons.values()}) == 1:',
        "if len({*reasons.values()}) == 1:",
        ("tests/claims/test_judge.py::test_a_claim_on_one_score_names_it",),
    ),
    Defect(
        "MLflow is told the paper's relation as that of this scale",
        "repro/runs/run.py",
        "relation(vars(settings.scale.base), vars(settings.hyper))",
        "relation(vars(BASE), vars(settings.paper_hyper))",
        ("tests/test_experiment.py::test_mlflow_is_told_of_a_row_what_it_changes_and_both_counts",),
    ),
)
