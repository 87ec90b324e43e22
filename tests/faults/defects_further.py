"""Defects of what runs score on other test sets, each with the tests that notice it."""

from faults.defect import Defect

OF_RUN, OF_CORPUS = "tests/runs/test_further_tests.py::test_", "tests/data/test_corpora.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "other test sets are scored by the first weights",
        "repro/runs/further_tests.py",
        "    model.load_state_dict(weights)\n",
        "",
        (f"{OF_RUN}the_same_text_under_another_name_scores_the_same",),
    ),
    Defect(
        "a test set that changed keeps its old score",
        "repro/runs/further_tests.py",
        "name not in kept or kept[name].sha256 != sha256",
        "name not in kept",
        (f"{OF_RUN}it_is_made_once_and_anew_where_text_or_file_changed",),
    ),
    Defect(
        "a test set that is scored takes the place of the others",
        "repro/runs/further_tests.py",
        "kept | made",
        "made",
        (f"{OF_RUN}it_is_made_once_and_anew_where_text_or_file_changed",),
    ),
    Defect(
        "MLflow keeps the score of a test set that changed",
        "repro/tracking/mirror.py",
        "stored is None or (stored < point.time and point in self._apart)",
        "stored is None",
        (f"{OF_RUN}it_is_made_once_and_anew_where_text_or_file_changed",),
    ),
    Defect(
        "MLflow never learns of other test sets",
        "repro/runs/further_tests.py",
        "        sync_soon(tracker, run.folder)",
        "        None",
        (f"{OF_RUN}the_same_text_under_another_name_scores_the_same",),
    ),
    Defect(
        "an altered test set is believed",
        "repro/data/corpora.py",
        "            _recognised(found[test], name, pair, stems)\n",
        "",
        (f"{OF_CORPUS}an_altered_test_set_is_refused",),
    ),
    Defect(
        "a mean over test sets says that all seeds were scored",
        "repro/results/further_tests.py",
        '/n"] = len(scores)',
        '/n"] = len(found)',
        (f"{OF_RUN}a_mean_is_over_the_seeds_that_have_it_and_says_how_many",),
    ),
    Defect(
        "publishing believes the score of another test set",
        "repro/runs/outputs.py",
        "    return _further_rescored(record, results, corpus)\n",
        "    return None\n",
        (f"{OF_RUN}translations_that_do_not_score_what_their_file_says_are_found",),
    ),
    Defect(
        "a run ends anew in MLflow where more comes of it",
        "repro/tracking/mirror.py",
        "            sync(tracker.uri, folder)\n",
        "            Mirror(tracker, folder).close()\n",
        (f"{OF_RUN}it_is_made_once_and_anew_where_text_or_file_changed",),
    ),
)
