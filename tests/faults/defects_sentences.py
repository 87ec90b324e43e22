"""Defects of what is kept of each sentence, of the bootstrap and of what shows it, with the tests that notice each."""

from faults.defect import Defect

KEPT, OF_KEPT = "repro/results/sentences.py", "tests/results/test_sentences.py::test_"
RESAMPLED = "repro/results/resampled.py"
BOOTSTRAP, OF_BOOTSTRAP = "repro/claims/bootstrap.py", "tests/claims/test_bootstrap.py::test_"
OUTPUTS, OF_OUTPUTS = "repro/runs/outputs.py", "tests/runs/test_outputs.py::test_"
PUBLISH, OF_PUBLISH = "repro/results/publish.py", "tests/results/test_publish.py::test_"
FOREST, OF_FOREST = "repro/figures/forest.py", "tests/figures/test_forest.py::test_"
TO_BASE = "repro/claims/to_base.py"
COUNTS, OF_COUNTS = "repro/decoding/counts.py", "tests/decoding/test_counts.py::test_"

DEFECTS: tuple[Defect, ...] = (
    # BLEU from sums
    Defect(
        "each n-gram that is never right is smoothed alike",
        KEPT,
        "0.5 ** np.cumsum(missed, axis=-1)",
        "0.5 * missed",
        (f"{OF_KEPT}bleu_of_sums_is_sacrebleus",),
    ),
    Defect(
        "multi-bleu is smoothed",
        KEPT,
        '"bleu_published": False}',
        '"bleu_published": True}',
        (f"{OF_COUNTS}where_no_4_gram_is_right_only_sacrebleu_smooths",),
    ),
    Defect(
        "a long translation is rewarded",
        KEPT,
        "np.minimum(0.0, 1 - reference / hypothesis)",
        "1 - reference / hypothesis",
        (f"{OF_KEPT}bleu_of_sums_is_sacrebleus",),
    ),
    Defect(
        "a line has as many 4-grams as words",
        KEPT,
        "np.maximum(self.hypothesis[:, None] - np.arange(ORDERS), 0)",
        "self.hypothesis[:, None] + np.zeros(ORDERS, np.int64)",
        (f"{OF_KEPT}summands_count_the_n_grams_there_are", f"{OF_COUNTS}their_sums_give_both_scores"),
    ),
    Defect(
        "Moses tokens are counted as they are cut again",
        COUNTS,
        "cut = given_tokens if in_tokens else published_tokens",
        "cut = published_tokens",
        (f"{OF_COUNTS}their_sums_give_both_scores",),
    ),
    # what stands beside a record
    Defect(
        "the counts of another run are taken for a record's",
        KEPT,
        '    if content["run"] != expected.run:\n',
        "    if False:\n",
        (f"{OF_KEPT}the_translations_of_another_seed_are_known_as_such",),
    ),
    Defect(
        "counts that give another BLEU are taken for a record's",
        KEPT,
        "abs(scored - counted) > SAME_BLEU",
        "False",
        (f"{OF_KEPT}counts_that_cannot_be_are_refused",),
    ),
    Defect(
        "the translations of another seed pass",
        KEPT,
        'hashlib.sha256(unpacked(_hypotheses(place, split))).hexdigest() != content[split]["hypotheses"]',
        "False",
        (
            f"{OF_KEPT}the_translations_of_another_seed_are_known_as_such",
            f"{OF_PUBLISH}the_translations_of_another_seed_are_refused[translations]",
        ),
    ),
    Defect(
        "the time is in the files",
        "repro/storage/packed_json.py",
        "gzip.compress(data, 9, mtime=0)",
        "gzip.compress(data, 9)",
        (f"{OF_KEPT}the_same_translations_are_the_same_bytes",),
    ),
    Defect(
        "translations of the code before stay beside a new record",
        OUTPUTS,
        "    elif not (are_of(place, record.run) and has_places(place)):\n",
        '    elif not place.with_name(f"{place.stem}.counts.gz").exists():\n',
        (f"{OF_OUTPUTS}what_stands_there_is_not_made_again_unless_it_is_of_another_run",),
    ),
    Defect(
        "dev is scored on the references of test",
        OUTPUTS,
        'return {"dev": run.prepared.dev, ',
        'return {"dev": run.prepared.test, ',
        (f"{OF_OUTPUTS}what_a_run_translated_stands_beside_its_record",),
    ),
    # publishing
    Defect(
        "records are published without their translations",
        PUBLISH,
        "        found = [*sentences.faults(results, record)]\n",
        "        found: list[str] = []\n",
        (f"{OF_PUBLISH}records_without_their_translations_are_refused",),
    ),
    Defect(
        "translations are not scored again",
        PUBLISH,
        "(wrong := rescored(record, results))",
        "(wrong := None)",
        (f"{OF_PUBLISH}translations_that_are_worth_something_else_on_their_text_are_refused",),
    ),
    Defect(
        "translations stay where they are when their record is published",
        PUBLISH,
        "(sentences.copy_sentences, copy_inside,",
        "(copy_inside,",
        (f"{OF_PUBLISH}translations_go_with_their_records",),
    ),
    # the bootstrap
    Defect(
        "each run has its own resamples",
        RESAMPLED,
        "draws(len(summands)) @ summands",
        "np.random.default_rng(int(summands.sum())).permutation(draws(len(summands))) @ summands",
        (
            f"{OF_BOOTSTRAP}one_run_of_each_row_is_sacrebleus_own_test",
            f"{OF_BOOTSTRAP}several_seeds_are_the_mean_of_their_paired_differences_on_the_same_draws",
            f"{OF_BOOTSTRAP}what_both_rows_find_hard_does_not_widen_the_interval",
        ),
    ),
    Defect(
        "the pairing is lost: ends of one row against ends of the other",
        RESAMPLED,
        "of_row - np.mean(less, axis=0) if less",
        "np.append(of_row[0] - np.mean(less, axis=0)[0], "
        "np.sort(of_row[1:]) - np.sort(np.mean(less, axis=0)[1:])[::-1]) if less",
        (
            f"{OF_BOOTSTRAP}one_run_of_each_row_is_sacrebleus_own_test",
            f"{OF_BOOTSTRAP}what_both_rows_find_hard_does_not_widen_the_interval",
        ),
    ),
    Defect(
        "another number starts the draws than sacreBLEU's",
        RESAMPLED,
        "RESAMPLES, SEED = 1_000, 12_345",
        "RESAMPLES, SEED = 1_000, 12_346",
        (f"{OF_BOOTSTRAP}the_draws_are_sacrebleus_and_each_has_as_many_sentences_as_the_text",),
    ),
    Defect(
        "an interval of 90 %",
        RESAMPLED,
        "OUTSIDE = 40",
        "OUTSIDE = 20",
        (f"{OF_BOOTSTRAP}one_run_of_each_row_is_sacrebleus_own_test",),
    ),
    # verdicts in tables
    Defect(
        "a row shows the verdict on any claim that names it",
        "repro/pages/verdicts.py",
        "if one.claim.kind in DIFFERENCES and len(others) == 1:",
        "for _ in others:",
        ("tests/pages/test_verdicts.py::test_claims_about_other_pairs_and_trends_say_nothing_of_a_row",),
    ),
    Defect(
        "short translations count as empty",
        "repro/results/lengths.py",
        "(of.hypothesis == 0).mean()",
        "(of.hypothesis < 3).mean()",
        ("tests/results/test_lengths.py::test_empty_ones_are_counted_and_all_tokens_are_held_against_the_references",),
    ),
    Defect(
        "an answer gives a number whose sign is open",
        "repro/pages/statements.py",
        "        is_open = found.verdict.outcome in UNDECIDED\n",
        "        is_open = False\n",
        ("tests/pages/test_statements.py::test_an_answer_says_what_is_worse_what_is_better_and_what_nobody_knows",),
    ),
    Defect(
        "of several verdicts on a row the last is shown",
        "repro/pages/verdicts.py",
        "            said.setdefault(others[0], []).append(one)\n",
        "            said[others[0]] = [one]\n",
        ("tests/pages/test_verdicts.py::test_several_claims_have_their_names_where_their_words_differ",),
    ),
    Defect(
        "a statement is shown with one of its rows alone",
        "repro/pages/verdicts.py",
        "            for row in one.claim.rows:\n",
        "            for row in one.claim.rows[:1]:\n",
        (
            "tests/pages/test_verdicts.py::test_statements_of_other_texts_have_their_names_with_each_row_that_they_are_about",
        ),
    ),
    Defect(
        "the anchor's score is held against its own mean",
        "repro/pages/anchor.py",
        "if low <= published <= high:",
        "if not low <= published <= high:",
        ("tests/pages/test_anchor.py::test_one_published_model_is_held_against_one_more_of_ours",),
    ),
    Defect(
        "rates of an older list of claims are told",
        "repro/claims/simulated.py",
        'found["claims"] != catalogue_digest()',
        'found["claims"] == ""',
        ("tests/pages/test_claims.py::test_a_page_tells_of_simulations_of_its_own_scale_and_claims_only",),
    ),
    Defect(
        "a table has no verdicts",
        "repro/pages/of_table.py",
        "tables.page(frame, scale, name, judged, stated)",
        "tables.page(frame, scale, name, (), stated)",
        ("tests/pages/test_verdicts.py::test_the_pages_of_a_scale_have_their_verdicts",),
    ),
    Defect(
        "a badge is given to runs that nobody looked at",
        "repro/results/repeatable.py",
        "        return Shown(NOT_LOOKED_AT, processor)\n",
        '        return Shown("L1", processor)\n',
        ("tests/results/test_repeatable.py::test_what_came_before_badges_says_so",),
    ),
    Defect(
        "the bootstrap of a claim takes other runs than its look",
        BOOTSTRAP,
        "(evidence.at(look) for look in reversed(LOOKS))",
        "(evidence.at(look) for look in LOOKS)",
        (f"{OF_BOOTSTRAP}a_claim_is_looked_at_by_the_runs_of_its_look",),
    ),
    Defect(
        "the wider interval is called the narrower",
        "repro/pages/claims.py",
        "is_wider = interval.high - interval.low > found.high - found.low",
        "is_wider = interval.high - interval.low < found.high - found.low",
        (f"{OF_BOOTSTRAP}the_page_says_which_interval_is_wider",),
    ),
    # the picture of differences
    Defect(
        "a worse row stands at the right",
        TO_BASE,
        "value=value if is_better else -value",
        "value=value",
        (
            f"{OF_FOREST}a_better_row_stands_at_the_right_by_either_score",
            f"{OF_FOREST}the_interval_over_sentences_is_of_the_translations_that_stand_beside_the_records",
            f"{OF_FOREST}the_numbers_beside_the_picture_are_those_of_the_claims",
        ),
    ),
    Defect(
        "runs that settle no claim are drawn with those that do",
        TO_BASE,
        "runs = _with_score(taken, row, endpoint)",
        "runs = _with_score(self._everything, row, endpoint)",
        (
            f"{OF_FOREST}runs_that_do_not_count_have_no_interval",
            f"{OF_FOREST}the_numbers_beside_the_picture_are_those_of_the_claims",
        ),
    ),
    Defect(
        "the names of rows run into their numbers of runs",
        FOREST,
        "left.text(-0.19, place, style.symbols(line.name)",
        "left.text(-0.06, place, style.symbols(line.name)",
        (f"{OF_FOREST}no_word_lies_over_another_or_outside",),
    ),
    Defect(
        "rows that cost the same crowd the picture of cost",
        "repro/figures/quality.py",
        "abs(point.flops / base[0] - 1) > SAME_COST",
        "True",
        ("tests/figures/test_quality.py::test_rows_of_the_bases_cost_are_left_out",),
    ),
)
