"""Defects of own text, of repeated text and of scoring, and the tests that must notice them."""

from faults.defect import Defect

BLEU, CARD, CORPUS = "repro/decoding/bleu.py", "repro/data/datacard.py", "repro/data/corpora.py"
IMPORTER, PAIR, ENCODE = "repro/data/importer.py", "repro/data/pair.py", "repro/data/encode.py"
OF_BLEU, OF_CARD, OF_IMPORTER = (
    f"tests/{name}.py::" for name in ("decoding/test_bleu", "data/test_datacard", "data/test_importer")
)
IN_PIECES = ("tests/test_own_text.py::test_text_in_pieces_of_a_language_with_a_tag",)
SPANISH = "tests/test_own_text.py::test_a_language_that_the_authors_never_scored_is_trained_to_the_end"
OF_PREPARE = "tests/data/test_prepare.py::"

DEFECTS: tuple[Defect, ...] = (
    # scoring
    Defect(
        "every language is said to have a published protocol",
        BLEU,
        "    if _rules(language) in LANGUAGES:\n",
        "    if True:\n",
        (f"{OF_BLEU}test_a_language_without_a_protocol_says_so_and_is_refused[es]",),
    ),
    Defect(
        "a run into a language without a protocol fails after its training",
        "repro/runs/task.py",
        "        if published_protocol(target) is None:\n",
        "        if True:\n",
        (SPANISH,),
    ),
    Defect(
        "records of the first format are refused",
        "repro/results/record.py",
        '"a record", FORMAT, WITHOUT_CURVES)',
        '"a record", FORMAT)',
        ("tests/results/test_golden.py::test_it_loads_and_is_written_again_as_it_was",),
    ),
    Defect(
        "a score of another task is held to be translation's",
        "repro/results/record.py",
        "task.of_split(self.about), f",
        "task.of_split(TRANSLATION), f",
        ("tests/results/test_record.py::test_a_record_has_the_scores_of_its_task_and_no_others",),
    ),
    Defect(
        "a finished record may lack any score",
        "repro/results/task.py",
        "return alike and dev - LATER_SCORES == {*keys(undefined)}",
        "return True",
        ("tests/results/test_record.py::test_a_finished_run_may_lack_the_published_score_and_nothing_else",),
    ),
    Defect(
        "given tokens are cut again, as published",
        "repro/runs/task.py",
        "references, target, are_tokens=in_tokens)",
        "references, target)",
        IN_PIECES,
    ),
    Defect(
        "given tokens are cut again by sacreBLEU",
        "repro/runs/task.py",
        "tokens_of=target if in_tokens else None)",
        "tokens_of=None)",
        IN_PIECES,
    ),
    Defect(
        "the references of given tokens keep their escapes",
        BLEU,
        "    line = unescaped(tokens).replace(SPLIT_DASH",
        "    line = tokens.replace(SPLIT_DASH",
        (f"{OF_BLEU}test_given_tokens_by_hand",),
    ),
    Defect(
        "the text of Britz et al. is taken for plain text",
        CORPUS,
        "in_tokens=known.in_tokens or vocabulary is not None,",
        "in_tokens=False,",
        IN_PIECES,
    ),
    # repeated text
    Defect(
        "a held-out source with another target counts as a pair",
        CARD,
        "if normal and normal == held_out:",
        "if normal:",
        (
            f"{OF_CARD}test_lines_are_compared_by_their_words",
            f"{OF_PREPARE}test_held_out_text_in_the_training_text_is_counted",
        ),
    ),
    Defect(
        "a held-out line counts once for each shard that has it",
        CARD,
        "(sorted({i for shard in train for i in shard.get(what, {}).get(split, ())}) for what in SEEN)",
        "(sorted(i for shard in train for i in shard.get(what, {}).get(split, ())) for what in SEEN)",
        (f"{OF_PREPARE}test_repeated_text_is_counted_over_all_shards_and_once",),
    ),
    Defect(
        "sources that are their targets are not counted",
        ENCODE,
        "            same_sides += sum(source == target for source, target in zip(*lines, strict=True))\n",
        "",
        (f"{OF_PREPARE}test_held_out_text_in_the_training_text_is_counted",),
    ),
    Defect(
        "nobody is told of repeated text when a table is made",
        "repro/runs/workshop.py",
        "        for sentence in (*repeated(prepared.repeats), *unlisted(card), *self._too_small(prepared, scale)):\n",
        "        for sentence in ():\n",
        (SPANISH,),
    ),
    # own text
    Defect(
        "a pair is cut at its first dash",
        PAIR,
        "if len(parts) == 2 else [i for i, part in enumerate(parts) if LANGUAGE.fullmatch(part)]",
        "",
        ("tests/data/test_pair.py::test_a_pair_is_two_tags[zh-Hans-en-found3]",),
    ),
    Defect(
        "dev is drawn by the source as it is spelt",
        IMPORTER,
        "    words = normalised(source) or source\n",
        "    words = source\n",
        (f"{OF_IMPORTER}test_no_source_stands_on_both_sides_however_often_it_comes",),
    ),
    Defect(
        "an empty line may become held-out text",
        IMPORTER,
        "may_move = drawn and _is_sentence(source) and _is_sentence(target)",
        "may_move = drawn",
        (f"{OF_IMPORTER}test_what_is_no_sentence_never_becomes_held_out",),
    ),
    Defect(
        "a ragged table is read",
        IMPORTER,
        "        if len(cells) != n_columns:\n",
        "        if len(cells) < 2:\n",
        (f"{OF_IMPORTER}test_bad_text_is_named_and_nothing_is_written",),
    ),
    Defect(
        "the longer of two files is cut off",
        IMPORTER,
        "    if n_source != n_target:\n",
        "    if False:\n",
        (f"{OF_IMPORTER}test_sides_of_different_length_are_named",),
    ),
    Defect(
        "a folder that holds something is written over",
        "repro/storage/folder_cache.py",
        "    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):\n",
        "    if folder.is_file():\n",
        (f"{OF_IMPORTER}test_a_folder_that_holds_something_is_left_alone",),
    ),
    Defect(
        "a vocabulary in the folder is overlooked",
        CORPUS,
        "        return place if (place := folder / GIVEN).is_file() else None\n",
        "        return None\n",
        ("tests/data/test_corpora.py::test_a_folder_with_a_vocabulary_is_in_pieces_of_moses_tokens",),
    ),
    Defect(
        "large gzip is warned of after it was read",
        CORPUS,
        """                tell(warning)
        text = Parallel(*sides, may_drop=split == "train", name=part, notes=notes)
""",
        """                text = Parallel(*sides, may_drop=split == "train", name=part, notes=notes)
                text.fingerprints()
                tell(warning)
        text = Parallel(*sides, may_drop=split == "train", name=part, notes=notes)
""",
        ("tests/data/test_corpora.py::test_large_gzip_is_warned_of_before_it_is_read",),
    ),
    Defect(
        "beside words that are kept whole, letters may become the end of a sentence",
        "repro/data/tokenizer.py",
        'if "".join(pair) not in SPECIAL]',
        "if pair]",
        (
            "tests/data/test_tokenizer.py::"
            "test_letters_that_spell_a_special_token_stay_letters_beside_words_that_are_kept_whole[</s>]",
        ),
    ),
    Defect(
        "two vocabularies of one text share a table",
        "repro/runs/workshop.py",
        "        if corpus.vocabulary:\n",
        "        if not corpus.sha256:\n",
        ("tests/test_experiment.py::test_two_vocabularies_of_one_text_never_share_a_table",),
    ),
)
