"""Defects of the page over all scales, each with the tests that notice it."""

from faults.defect import Defect

PAGE, TESTS = "repro/pages/across_scales.py", "tests/pages/test_across_scales.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a verdict stands at another scale",
        PAGE,
        "_cell(line[i], at.scale) for line in lines",
        "_cell(line[-1 - i], at.scale) for line in lines",
        (f"{TESTS}a_verdict_stands_at_its_own_scale", f"{TESTS}report_writes_it_and_check_finds_it_stale"),
    ),
    Defect(
        "a scale that settles nothing has a column",
        PAGE,
        "[one for one in scales if settles(one.judged)]",
        "[*scales]",
        (
            f"{TESTS}only_scales_that_settle_something_about_rows_have_a_column_small_ones_first",
            f"{TESTS}where_nothing_is_settled_there_is_no_such_page_and_one_of_before_goes",
        ),
    ),
    Defect(
        "the largest scale stands first",
        PAGE,
        "(place_of_scale(one.scale), ",
        "(-place_of_scale(one.scale), ",
        (f"{TESTS}only_scales_that_settle_something_about_rows_have_a_column_small_ones_first",),
    ),
    Defect(
        "what came out at the first scale is said of all",
        PAGE,
        "found = {one.verdict for one in line if _is_judged(one)}",
        "found = {next(one.verdict for one in line if _is_judged(one))}",
        (f"{TESTS}what_came_out_is_said_of_every_claim_once",),
    ),
    Defect(
        "several pages are promised the error rate of one",
        PAGE,
        "{level * n:g} % over these",
        "{level:g} % over these",
        (f"{TESTS}only_verdicts_that_occur_are_explained_and_the_error_of_all_pages_is_added_up",),
    ),
    Defect(
        "a scale that settles nothing is said not to have been run",
        PAGE,
        'run = {one.scale.split("-")[0] for one in scales}',
        'run = {one.scale.split("-")[0] for one in shown}',
        (f"{TESTS}what_is_missing_is_counted",),
    ),
    Defect(
        "a sentence has the sizes of one of the scales",
        PAGE,
        "[claim.sentence for claim in claims]",
        "[line[0].sentence for line in lines]",
        (f"{TESTS}claims_stand_table_by_table_in_the_papers_words",),
    ),
    Defect(
        "the page over all scales has its verdicts made again",
        "repro/pages/build.py",
        "made |= _pages_of_scale(data)",
        "made |= build_scale(result_set, judged_without_runs(result_set))",
        (f"{TESTS}verdicts_are_made_once_for_all_pages",),
    ),
    Defect(
        "a page over scales that settle nothing any more stays",
        "repro/pages/build.py",
        'made.setdefault(over_all, "")',
        "pass",
        (f"{TESTS}where_nothing_is_settled_there_is_no_such_page_and_one_of_before_goes",),
    ),
    Defect(
        "a page that somebody wrote is replaced",
        "repro/pages/build.py",
        "elif over_all in made:",
        "elif over_all not in made:",
        (f"{TESTS}nobodys_own_page_is_replaced",),
    ),
)
