"""Defects of fetching, of archives and of the corpora made of them, and the tests that must notice them."""

from faults.defect import Defect

FETCH = "repro/data/download/fetch.py"
TRANSFER = "repro/data/download/transfer.py"
OF_FETCH = "tests/data/download/test_fetch.py::"
OF_TRANSFER = "tests/data/download/test_transfer.py::"
OF_COMMANDS = "tests/cli/test_data.py::"
OF_SUBSET = "tests/data/test_subset.py::"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "an address that is none, in a redirection, breaks the whole fetch",
        TRANSFER,
        "        session.get_redirect_target = lambda _: None",
        "        seconds = seconds",
        (f"{OF_TRANSFER}test_a_redirection_to_what_is_no_address[http://[::1/]",),
    ),
    Defect(
        "without a network each mirror is waited for",
        TRANSFER,
        "        if is_unreachable and not self._has_answered:",
        "        if is_unreachable and self._has_answered:",
        (
            f"{OF_TRANSFER}test_without_a_network_it_says_what_to_do_and_does_not_wait",
            f"{OF_TRANSFER}test_a_server_that_goes_away_is_waited_for",
        ),
    ),
    Defect(
        "any host may give what no hash vouches for",
        TRANSFER,
        "        is_known = self._source.is_pinned and",
        "        is_known =",
        (f"{OF_TRANSFER}test_no_redirection_leaves_tls[False]",),
    ),
    Defect(
        "a mirror without TLS may give what no hash vouches for",
        FETCH,
        """    is_safe = address.scheme == "https" or source.is_pinned""",
        "    is_safe = True",
        (f"{OF_FETCH}test_a_mirror_without_tls_gives_only_what_a_hash_vouches_for",),
    ),
    Defect(
        "an altered text of an archive that is known by its texts is taken",
        FETCH,
        "        if member.sha256 not in (None, found := text_fingerprint(folder / name).sha256):",
        "        if member.sha256 == (found := ''):",
        (f"{OF_COMMANDS}test_captions_are_known_by_their_texts",),
    ),
    Defect(
        "fairseq's ratio is not reached but exceeded",
        "repro/data/filters.py",
        "            is_uneven = most > FAIRSEQ_TIMES * fewest",
        "            is_uneven = most >= FAIRSEQ_TIMES * fewest",
        ("tests/data/test_filters.py::test_what_fairseq_left_out[wort wort-wort wort wort-None]",),
    ),
    Defect(
        "fetch stores in the project though REPRO_DATA names a folder",
        "repro/cli/data.py",
        """os.environ.get("REPRO_DATA") or PROJECT""",
        "PROJECT",
        (f"{OF_COMMANDS}test_fetch_stores_where_repro_data_says_and_prepare_finds_it_there",),
    ),
    # the test set and its part
    Defect(
        "the first lines of a test set pass for those of its part",
        "repro/runs/execution.py",
        "self.trial.scores([hypotheses[i] for i in subset.places], subset.references)",
        "self.trial.scores(hypotheses[: len(subset.places)], subset.references)",
        (f"{OF_SUBSET}test_the_part_is_scored_from_the_lines_of_its_own",),
    ),
    Defect(
        "the lines of a part are taken in the order of the whole",
        "repro/data/subset.py",
        "places=tuple(places)",
        "places=tuple(sorted(places))",
        (
            f"{OF_SUBSET}test_lines_are_found_in_whatever_order",
            f"{OF_SUBSET}test_wmt14_has_its_whole_test_set_and_the_part_that_the_task_scored",
        ),
    ),
    Defect(
        "a run scored on 2,737 lines keeps to the paper",
        "repro/results/departures.py",
        """kept=lambda record: record.corpus["n_test"] == NEWSTEST_2014""",
        """kept=lambda record: record.corpus["n_test"] <= NEWSTEST_2014""",
        ("tests/results/test_departures.py::test_what_departs_is_named[test set-other3-2,737 lines of it]",),
    ),
    Defect(
        "40.8 million pairs pass for 36",
        "repro/results/departures.py",
        "PAPER_PAIRS.get(record.pair, 0), share=0.05)",
        "PAPER_PAIRS.get(record.pair, 0), share=0.15)",
        ("tests/results/test_departures.py::test_what_departs_is_named[data-other2-wmt14 en-fr, 40,842,333 pairs]",),
    ),
)
