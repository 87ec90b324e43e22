"""Defects of verdicts: what counts as evidence, and what may be said of it."""

from faults.defect import Defect

CLAIMS = "repro/claims"
EVIDENCE, DECISIONS, JUDGE, STATISTICS = (
    f"{CLAIMS}/{name}.py" for name in ("evidence", "decisions", "judge", "statistics")
)
OF_EVIDENCE = "tests/claims/test_evidence.py::test_"
OF_JUDGE = "tests/claims/test_judge.py::test_"
OF_PAGE = "tests/pages/test_claims.py::test_"
OF_STATISTICS = "tests/claims/test_statistics.py::test_"

DEFECTS = (
    Defect(
        "a list that came after the run judges it",
        EVIDENCE,
        "if record.claims not in lists:",
        "if record.claims is None:",
        (f"{OF_EVIDENCE}what_does_not_count_is_set_apart_by_name",),
    ),
    Defect(
        "a claim is judged by runs that began before it",
        JUDGE,
        "if late := sum(not held(run.claims, claim)",
        "if late := sum(held(run.claims, claim) is None",
        (f"{OF_JUDGE}a_claim_that_came_later_is_not_judged_by_the_runs_before_it",),
    ),
    Defect(
        "a list that was edited is believed",
        f"{CLAIMS}/lists.py",
        "if digest_of(claims) != digest:",
        "if not claims:",
        ("tests/claims/test_lists.py::test_a_list_that_was_edited_is_refused",),
    ),
    Defect(
        "seeds that were used to choose count",
        EVIDENCE,
        "if record.seed < FIRST_SEED:",
        "if record.seed < 1:",
        (f"{OF_EVIDENCE}seeds_that_were_looked_at_before_do_not_count",),
    ),
    Defect(
        "a seed that displeases can be thrown away",
        EVIDENCE,
        "if record.seed == FIRST_SEED + place]",
        "if record.seed >= FIRST_SEED + place]",
        (f"{OF_EVIDENCE}after_a_gap_nothing_counts", f"{OF_EVIDENCE}a_run_set_apart_leaves_a_gap"),
    ),
    Defect(
        "one seed copied as several counts",
        EVIDENCE,
        "(one.seed, one.hyper) != (of[0].seed, of[0].hyper)",
        "one.hyper != of[0].hyper",
        (f"{OF_EVIDENCE}a_seed_copied_as_several_counts_not_even_once",),
    ),
    Defect(
        "a run stopped early counts",
        EVIDENCE,
        'if finished and record.cost["steps"] != record.hyper["steps"]:',
        'if finished and record.cost["steps"] > record.hyper["steps"]:',
        (f"{OF_EVIDENCE}what_does_not_count_is_set_apart_by_name",),
    ),
    Defect(
        "a run without a badge counts",
        EVIDENCE,
        'record.determinism is None or record.determinism["badge"] is None',
        "record.determinism is None",
        (f"{OF_EVIDENCE}what_does_not_count_is_set_apart_by_name",),
    ),
    Defect(
        "a look takes all seeds there are",
        EVIDENCE,
        "{row: of[: needed(row, look)] for row, of",
        "{row: of for row, of",
        (
            f"{OF_EVIDENCE}a_look_takes_the_declared_number_of_the_base_and_of_the_others",
            f"{OF_JUDGE}seeds_beyond_those_declared_change_nothing",
        ),
    ),
    Defect(
        "rows of two scorers are compared",
        EVIDENCE,
        "return [*beside, *(name for name, found in alike.items() if len(found) > 1)]",
        'return [*beside, *(name for name, found in alike.items() if len(found) > 1 and name != "scorer")]',
        (f"{OF_EVIDENCE}what_rows_differ_in_besides_their_own_numbers",),
    ),
    Defect(
        "a small scale reproduces",
        DECISIONS,
        "return OF_SIZE if self.sized else OF_SIGN",
        "return OF_SIZE",
        (
            f"{OF_STATISTICS}a_sign",
            f"{OF_JUDGE}below_the_papers_scale_no_trained_row_reproduces_or_contradicts_anything",
        ),
    ),
    Defect(
        "a sign is tested on one side only",
        DECISIONS,
        "np.minimum(1.0, 2 * np.minimum(",
        "np.minimum(1.0, 1 * np.minimum(",
        (f"{OF_STATISTICS}where_nothing_is_better_five_in_a_hundred_are_called_so",),
    ),
    Defect(
        "what is judged by an interval has no place in the family",
        DECISIONS,
        "*[1.0] * beside]",
        "*[1.0] * 0]",
        (f"{OF_STATISTICS}what_cannot_be_tested_keeps_its_place_in_the_family",),
    ),
    Defect(
        "a magnitude is inconsistent at the level of one test",
        DECISIONS,
        "if abs(reported - value) > contrast.prediction(alpha):",
        "if abs(reported - value) > half:",
        (f"{OF_STATISTICS}magnitude",),
    ),
    Defect(
        "the base is pooled with the others",
        JUDGE,
        "return pool(found, reference=B0)",
        "return pool(found)",
        (f"{OF_JUDGE}the_base_keeps_its_own_spread",),
    ),
    Defect(
        "the reference lends its spread",
        STATISTICS,
        "for name, values in several.items() if name != reference}",
        "for name, values in several.items()}",
        (f"{OF_STATISTICS}the_reference_keeps_its_own_spread_and_lends_it_to_nobody",),
    ),
    Defect(
        "a wide row is judged by the others' spread",
        STATISTICS,
        "(*self.taken_out, *self.wide, self.reference)",
        "(*self.taken_out, self.reference)",
        (f"{OF_STATISTICS}of_its_own_variance_and_the_others_a_row_has_the_larger",),
    ),
    Defect(
        "the level of both looks is spent at each",
        JUDGE,
        "results = judged([cell.test for cell in cells], suite.look.alpha,",
        "results = judged([cell.test for cell in cells], 0.05,",
        (f"{OF_JUDGE}the_first_look_takes_three_seeds_and_has_its_own_level",),
    ),
    Defect(
        "dropout is judged where nothing is learned by heart",
        "repro/claims/claim.py",
        "if dev - train >= self.gap:",
        "if dev - train >= -self.gap:",
        (f"{OF_JUDGE}dropout_is_judged_only_where_a_text_is_learned_by_heart",),
    ),
    Defect(
        "rows of two worlds are compared",
        JUDGE,
        "if records and (different := unlike(records)):",
        "if not records and (different := unlike(records)):",
        (f"{OF_JUDGE}rows_of_two_worlds_are_not_compared",),
    ),
    Defect(
        "runs that do not count get an interval",
        JUDGE,
        "means = [explored.get(row) for row in claim.rows]",
        "means, low, high = [explored.get(row) for row in claim.rows], 0.0, 1.0",
        (f"{OF_JUDGE}runs_that_do_not_count_show_their_mean_and_no_interval",),
    ),
    Defect(
        "a row with a system of its own is of another world than the base",
        EVIDENCE,
        'said = {*first.hyper, "system", "code of its system"}',
        'said = {*first.hyper, "system"}',
        (f"{OF_EVIDENCE}a_row_with_a_system_of_its_own_is_of_the_same_world_as_the_base",),
    ),
    Defect(
        "the code that all rows share is told with what is a row's own",
        "repro/results/kinds.py",
        'record.stamp.get("shared_fingerprint", record.stamp["fingerprint"])',
        'record.stamp["fingerprint"]',
        (f"{OF_EVIDENCE}a_row_with_a_system_of_its_own_is_of_the_same_world_as_the_base",),
    ),
    Defect(
        "a run is told apart from the newest of another row",
        EVIDENCE,
        " for one in kept if (one.table, one.row) == (record.table, record.row))",
        " for one in kept)",
        (f"{OF_EVIDENCE}seeds_that_are_no_repetitions_of_the_newest_do_not_count",),
    ),
    Defect(
        "a copy without a digest of its weights counts",
        EVIDENCE,
        'if finished and not record.determinism["weights"]:',
        'if not finished and not record.determinism["badge"]:',
        (
            f"{OF_EVIDENCE}what_does_not_count_is_set_apart_by_name",
            f"{OF_EVIDENCE}copies_that_hide_their_weights_do_not_reach_the_second_look",
        ),
    ),
    Defect(
        "a test set may be scored by another scorer",
        EVIDENCE,
        "for split in SPLITS for name in record.about",
        "for split in SPLITS[:1] for name in record.about",
        (f"{OF_EVIDENCE}rows_are_compared_on_the_same_sentences_scored_alike",),
    ),
    Defect(
        "rows scored on unequally many sentences are compared",
        EVIDENCE,
        "{record.n_sentences(split) for record in runs} for split in SPLITS",
        "{record.n_sentences(split) for record in runs[:1]} for split in SPLITS",
        (f"{OF_EVIDENCE}rows_are_compared_on_the_same_sentences_scored_alike",),
    ),
    Defect(
        "a trend hides the step against it",
        JUDGE,
        "if step * found.value < 0",
        "if step * found.value > 0",
        (f"{OF_JUDGE}a_trend_names_its_slope_and_the_steps_against_it",),
    ),
    Defect(
        "how far a row over-fits is told only where it does not",
        JUDGE,
        'if claim.needs and outcomes != {"not judged"}:',
        'if claim.needs and outcomes == {"not judged"}:',
        (f"{OF_JUDGE}a_claim_that_needs_a_row_to_over_fit_shows_by_how_much_it_does",),
    ),
    Defect(
        "a page without verdicts on trained rows promises how often they are wrong",
        "repro/pages/claims.py",
        'if all(one.verdict == "not judged" for one in trained):',
        "if not trained:",
        (f"{OF_PAGE}a_page_that_judges_no_trained_row_promises_nothing_of_them",),
    ),
    Defect(
        "an incomplete page looks complete",
        "repro/pages/claims.py",
        "if len(last) == len(rows):",
        "if len(last) <= len(rows):",
        (f"{OF_PAGE}an_incomplete_page_says_how_far_it_is_and_that_verdicts_may_change",),
    ),
    Defect(
        "a table of exploration says what evidence would show",
        "repro/pages/scale_data.py",
        "frame.attrs[EXPLORED] = not evidence.records",
        "frame.attrs[EXPLORED] = False",
        ("tests/pages/test_scale.py::test_a_page_of_exploration_says_so_on_top_of_all_its_tables",),
    ),
    Defect(
        "a wide interval is not explained",
        "repro/pages/scale.py",
        "and found.df < BASE_SEEDS - 1",
        "and found.df < 0",
        ("tests/pages/test_scale.py::test_a_wide_interval_is_explained_by_what_it_rests_on",),
    ),
)
