"""Defects of parsing, and the tests that must notice them."""

from faults.defect import Defect

TREES, F1 = "repro/data/treebank.py", "repro/decoding/evalb.py"
OF_TREES, OF_F1 = "tests/data/test_treebank.py::test_", "tests/decoding/test_evalb.py::test_"
TASK, BANKS, TOKENS = "repro/runs/parsing.py", "repro/data/treebanks.py", "repro/data/tokenizer.py"
OF_TASK, OF_BANKS = "tests/runs/test_parsing.py::test_", "tests/data/test_treebanks.py::test_"
OF_RESAMPLED = "tests/results/test_resampled.py::test_"
OF_BRACKETS = "tests/results/test_brackets.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "brackets are sets: the same twice counts once",
        F1,
        "of_gold, of_found = (Counter(filter(None, keys)) for keys in _both(gold, found))",
        "of_gold, of_found = (Counter({*filter(None, keys)}) for keys in _both(gold, found))",
        (f"{OF_F1}the_golden_example_to_the_last_count",),
    ),
    Defect(
        "parts of speech are brackets",
        F1,
        "    for label, begin, end in tree.brackets:\n",
        "    tags = [(leaf.tag, i, i + 1) for i, leaf in enumerate(tree.leaves)]\n"
        "    for label, begin, end in [*tree.brackets, *tags]:\n",
        (f"{OF_F1}the_golden_example_to_the_last_count",),
    ),
    Defect(
        "functions of labels are compared",
        F1,
        'label.partition("-")[0].partition("=")[0]',
        "label",
        (f"{OF_F1}the_golden_example_to_the_last_count",),
    ),
    Defect(
        "the tags found say what punctuation is",
        F1,
        "for leaf in wanted.leaves]",
        "for leaf in had.leaves]",
        (f"{OF_F1}by_hand",),
    ),
    Defect(
        "a mended tree loses the words that nobody wrote",
        TREES,
        "    leaves = map(Leaf, [*tags, *[UNTAGGED] * missing], words)\n",
        "    leaves = map(Leaf, tags, words)\n",
        (f"{OF_TREES}any_tokens_give_a_tree_whose_leaves_are_the_words",),
    ),
    Defect(
        "a tag that is a label closes a bracket",
        TREES,
        'form = {"open": "({}", "close": "){}", "leaf": "{}"}',
        'form = {"open": "{}", "close": "){}", "leaf": "{}"}',
        (f"{OF_TREES}a_true_line_comes_back_exactly",),
    ),
    Defect(
        "reading stops at what is no tree",
        TREES,
        "place = after.end() - 1 if after else None",
        "place = None",
        (f"{OF_TREES}reading_goes_on_after_what_is_no_tree",),
    ),
    Defect(
        "labels of held-out trees are learned",
        BANKS,
        '    of_train = [facts["train"]]\n',
        '    of_train = [facts["train"], facts["test"]]\n',
        (f"{OF_BANKS}test_is_never_learned_from",),
    ),
    Defect(
        "labels are cut into sub-words",
        TOKENS,
        '    contents["model"]["ignore_merges"] = True  # what the vocabulary has is taken as it is\n',
        "",
        (f"{OF_BANKS}labels_and_tags_are_one_token_each_and_the_card_says_what_the_trees_are",),
    ),
    Defect(
        "parsing is searched with the alpha of translation",
        TASK,
        "PARSING_SEARCH = Search(beam=21, alpha=0.3, extra=300)",
        "PARSING_SEARCH = Search(beam=21, extra=300)",
        (f"{OF_TASK}it_is_searched_and_scored_as_section_6_3_says",),
    ),
    Defect(
        "silver trees are read for dev",
        BANKS,
        "    text = _converted(name, {split: files[split] for split in SPLITS}, cache, tell)\n",
        '    splits = SPLITS if not silver else ("train", "silver", "test")\n'
        "    text = _converted(name, {s: files[of] for s, of in zip(SPLITS, splits, strict=True)}, cache, tell)\n",
        (f"{OF_BANKS}silver_text_is_a_part_of_train_alone",),
    ),
    Defect(
        "any copy of CRAFT is read",
        BANKS,
        "    check_craft(folder)\n",
        "",
        ("tests/data/download/test_craft.py::test_a_copy_is_read_only_where_it_is_the_published_one",),
    ),
    Defect(
        "a view of trees shows BLEU",
        "repro/tracking/views.py",
        "qualities=_qualities(rows.values()), ",
        "",
        ("tests/tracking/test_views.py::test_a_view_of_trees_has_f1_and_no_bleu",),
    ),
    Defect(
        "one mending of a kind is none",
        "repro/results/brackets.py",
        "times > 0 for times in self.mended.values()",
        "times > 1 for times in self.mended.values()",
        (f"{OF_BRACKETS}they_are_what_the_task_scores",),
    ),
    Defect(
        "F1 by length sorts the longest first",
        "repro/results/brackets.py",
        'np.argsort(self.words, kind="stable")',
        'np.argsort(-self.words, kind="stable")',
        (f"{OF_BRACKETS}scores_by_hand",),
    ),
    Defect(
        "what stands beside another run's record is published",
        "repro/results/beside.py",
        "    if is_of(source, run):\n",
        "    if file_of(source).exists():\n",
        (
            f"{OF_BRACKETS}copies_take_the_place_of_another_runs",
            "tests/runs/test_further_tests.py::test_it_goes_with_its_record_and_not_with_another",
        ),
    ),
    Defect(
        "F1 of a draw is the mean of its sentences'",
        "repro/results/parts.py",
        "    return resampled(np.stack([of.found, of.gold, of.right], axis=1).astype(np.float64), _f1)\n",
        "    each = _f1(np.stack([of.found, of.gold, of.right], axis=1).astype(np.float64))\n"
        "    return resampled(each[:, None] / len(each), lambda sums: sums[..., 0])\n",
        (f"{OF_RESAMPLED}f1_of_a_row_is_of_the_sums_over_each_draw",),
    ),
    Defect(
        "rows of parsers are drawn apart",
        "repro/results/parts.py",
        "    return over_draws([*map(_drawn_f1, row)], len(row[0].words), [*map(_drawn_f1, less)])\n",
        "    apart = [np.append(of[:1], np.roll(of[1:], 1)) for of in map(_drawn_f1, less)]\n"
        "    return over_draws([*map(_drawn_f1, row)], len(row[0].words), apart)\n",
        (f"{OF_RESAMPLED}a_difference_is_paired",),
    ),
    Defect(
        "brackets that give another F1 are believed",
        "repro/results/brackets.py",
        "abs(scored - counted) > SAME_F1",
        "abs(scored - counted) > 100",
        (f"{OF_BRACKETS}what_gives_other_scores_is_refused[another F1]",),
    ),
    Defect(
        "tables of parsers are told by their name",
        "repro/pages/table4.py",
        'return "dev/f1" in frame.columns',
        'return {*frame["table"]} == {NAME}',
        (
            "tests/results/test_brackets.py::test_another_table_of_parsers_has_their_columns_and_not_those_of_translation",
        ),
    ),
    Defect(
        "a beam of 21 takes as many sentences as one of 4",
        "repro/decoding/translate.py",
        "PAPER_SEARCH.beam // max(search.beam, PAPER_SEARCH.beam)",
        "PAPER_SEARCH.beam // PAPER_SEARCH.beam",
        ("tests/decoding/test_translate.py::test_no_beam_keeps_more_hypotheses_at_once_than_the_papers[21]",),
    ),
)
