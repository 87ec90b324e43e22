"""Defects of what a run is, what may stand in one cell and what is published, each with the tests that notice it."""

from faults.defect import Defect

STAMP, OF_STAMP = "repro/results/provenance.py", "tests/results/test_provenance.py::test_"
KINDS, TABLES, REPORT = "repro/results/kinds.py", "repro/results/frame.py", "tests/results/test_frame.py::test_"
PUBLISH, OF_PUBLISH = "repro/results/publish.py", "tests/results/test_publish.py::test_"
RECORD, OF_RECORD = "repro/results/record.py", "tests/results/test_record.py::test_"
FOLDER, OF_FOLDER = "repro/tracking/run_folder.py", "tests/tracking/test_run_folder.py::test_"
OF_RUN, OF_TASK = "tests/runs/test_run.py::test_", "tests/runs/test_task.py::test_"
ROWS, OF_ROWS = "repro/runs/table.py", "tests/runs/test_table.py::test_"

DEFECTS: tuple[Defect, ...] = (
    # which code decides
    Defect(
        "an imported name counts as it is written",
        STAMP,
        'lambda name: ",".join(sorted(meanings.get(name[1], ())))',
        "lambda name: name[1]",
        (f"{OF_STAMP}the_same_name_for_another_thing_counts",),
    ),
    Defect(
        "a file's place decides",
        STAMP,
        "            self.alone[module] = hashlib.sha256(text.encode()).hexdigest()\n"
        "            self.digests[module] = hashlib.sha256(linked.encode()).hexdigest()\n",
        "            self.alone[module] = hashlib.sha256(text.encode()).hexdigest()\n"
        "            self.digests[module] = hashlib.sha256((module + linked).encode()).hexdigest()\n",
        (f"{OF_STAMP}a_moved_file_changes_nothing",),
    ),
    Defect(
        "what types alone need decides",
        STAMP,
        'isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)',
        "False",
        (f"{OF_STAMP}it_covers_what_is_imported_at_any_distance_and_nothing_else",),
    ),
    Defect(
        "imports inside functions do not decide",
        STAMP,
        "            yield from _imports(node, package)\n",
        "            pass\n",
        (f"{OF_STAMP}it_covers_what_is_imported_at_any_distance_and_nothing_else",),
    ),
    Defect(
        "a comment that is not committed makes a run dirty",
        STAMP,
        "    if not changed or (system is None and not changed & of_task and _committed(root) == fingerprint()):",
        "    if not changed:",
        (f"{OF_STAMP}what_decides_nothing_makes_nothing_dirty",),
    ),
    Defect(
        "a release is believed whatever became of it",
        STAMP,
        '    if release["fingerprint"] != fingerprint():',
        "    if False:",
        (f"{OF_STAMP}a_release_without_git_is_as_good_as_its_commit",),
    ),
    Defect(
        "an older record is unreadable when a field is added",
        "repro/results/record.py",
        '            content["hyper"] = {field.name: field.default for field in fields(Hyper)} | content["hyper"]\n',
        "            pass\n",
        ("tests/results/test_record.py::test_a_field_that_hyper_gets_later_leaves_older_records_readable",),
    ),
    # what may stand in one cell
    Defect(
        "the number of threads is no matter",
        KINDS,
        '        "threads": record.stamp["n_threads"],\n',
        "",
        (f"{REPORT}a_published_cell_that_mixes_is_an_error", f"{OF_PUBLISH}a_mixed_row_of_ones_own_is_refused"),
    ),
    Defect(
        "older code is averaged with newer",
        KINDS,
        "            (left if differences(last, record) else kept).append(record)",
        "            kept.append(record)",
        (f"{REPORT}ones_own_cells_never_mix_what_is_no_repetition",),
    ),
    Defect(
        "uncommitted rows of one's own stand unmarked",
        TABLES,
        "    return NOT_COMMITTED * (key[0] in uncommitted) + NO_COMMIT * unclean\n",
        '    return ""\n',
        (f"{REPORT}ones_own_table_shows_and_marks_what_nobody_else_has",),
    ),
    Defect(
        "where nothing ran every run keeps to the recipe",
        "repro/pages/words.py",
        '    if not frame["n"].sum() and not frame["diverged"].sum():',
        "    if False:",
        (f"{REPORT}where_no_run_is_shown_nothing_is_said_to_be_kept",),
    ),
    Defect(
        "exact laws keep the noise of their processor",
        "repro/claims/growth.py",
        "    if np.abs(residuals).max() <= ROUNDING * np.abs(y).max():",
        "    if False:",
        ("tests/pages/test_table1.py::test_an_exact_law_leaves_no_noise",),
    ),
    # what is published
    Defect(
        "uncommitted code is published",
        PUBLISH,
        '        if record.stamp["dirty"]:',
        "        if False:",
        (f"{OF_PUBLISH}what_no_commit_has_is_refused",),
    ),
    Defect(
        "an uncommitted experiment is published",
        PUBLISH,
        "        elif not is_committed:",
        "        elif False:",
        (f"{OF_PUBLISH}an_experiment_that_is_not_committed_is_refused",),
    ),
    Defect(
        "a row is published by halves",
        PUBLISH,
        "        if mine and theirs and (changed := differences(theirs[0], mine[0])):",
        "        if changed := []:",
        (f"{OF_PUBLISH}some_seeds_of_other_code_are_refused",),
    ),
    # before the first step
    Defect(
        "a row may be the base again",
        ROWS,
        "        if other := seen.get((hyper, task, of)):",
        "        if other := None:",
        (f"{OF_ROWS}a_row_that_is_the_base_or_another_row_again_is_refused",),
    ),
    Defect(
        "two rows may have one name",
        ROWS,
        "        if twice := sorted(",
        "        if twice := [] and sorted(",
        (f"{OF_ROWS}two_rows_of_one_name_are_refused",),
    ),
    Defect(
        "two texts of one's own share a folder",
        "repro/runs/workshop.py",
        '        return replace(self.scale, name=short(f"{self.scale.name}-{known_by[:8]}"))',
        "        return self.scale",
        ("tests/test_experiment.py::test_two_texts_of_ones_own_never_share_a_table",),
    ),
    Defect(
        "a run goes by the names it had",
        "repro/runs/run.py",
        "            found,\n            table=self.settings.table,\n            row=self.settings.row,\n",
        "            found,\n",
        ("tests/test_experiment.py::test_a_run_goes_by_the_names_it_has_today",),
    ),
    Defect(
        "what was committed after it ran stays dirty",
        STAMP,
        '    if not stamp["dirty"] or stamp["fingerprint"] != fingerprint(system):',
        "    if True:",
        (f"{OF_STAMP}a_run_is_clean_once_its_code_is_committed",),
    ),
    Defect(
        "runs write where the published results stand",
        "repro/runs/options.py",
        "    if any(place.is_relative_to(folder) and not",
        "    if any(False and not",
        ("tests/test_experiment.py::test_the_published_folder_is_no_place_for_runs",),
    ),
    Defect(
        "table 1 is measured before anybody looks where it goes",
        "experiments/table1.py",
        "        check_place(options.results_dir)\n",
        "",
        (
            "tests/test_experiment.py::"
            "test_what_table_1_cannot_measure_or_keep_is_refused_before_it_measures[words3-74-"
            "error: file cannot be written to: Not a directory (]",
        ),
    ),
    Defect(
        "what a task imports beside it decides nothing",
        STAMP,
        "_Code(_beside(own), follows=True, faces=(PACKAGE.name,))",
        "_Code(_beside(own), faces=(PACKAGE.name,))",
        (f"{OF_TASK}a_task_is_told_by_what_its_file_imports_beside_it",),
    ),
    Defect(
        "a task that is not committed is clean",
        STAMP,
        "for file in _own(system, task) if not",
        "for file in _own(system, None) if not",
        (f"{OF_TASK}a_task_that_is_not_committed_makes_a_run_dirty_until_it_is[score_of_mine]",),
    ),
    Defect(
        "of a system the file alone has to be committed",
        STAMP,
        "        for module in code.alone:\n",
        "        for module in own:\n",
        ("tests/runs/test_system.py::test_what_a_system_imports_is_to_be_committed_too[kin/units.py]",),
    ),
    Defect(
        "a task of the package is clean whatever became of its code",
        STAMP,
        "} & (files | of_task)",
        "} & files",
        (f"{OF_STAMP}a_task_of_the_package_is_looked_at_with_what_it_imports",),
    ),
    Defect(
        "a run has the paper's size of the row it was made for",
        "repro/runs/run.py",
        "            params=self.params,\n",
        "",
        ("tests/test_experiment.py::test_a_run_has_the_size_of_its_row_of_today",),
    ),
    Defect(
        "seeds of one id are of two kinds",
        KINDS,
        "math.prod(record.settings.get(name, 1) for name in SHARES)",
        "[record.settings.get(name, 1) for name in SHARES]",
        ("tests/results/test_kinds.py::test_who_takes_the_parts_of_an_update_is_no_matter",),
    ),
    Defect(
        "a program waits for processes that the name of its scale says",
        "repro/experiment.py",
        "    if options.processes > 1:\n",
        "    if False:\n",
        ("tests/test_library.py::test_what_cannot_be_run_is_named",),
    ),
    Defect(
        "one of two that a scale says trains alone",
        "repro/experiment.py",
        "        refuse_other_processes(peer, options.processes)\n",
        "",
        ("tests/runs/test_launch.py::test_a_scale_of_more_processes_than_were_started_is_refused",),
    ),
    Defect(
        "rows of a program on one's own text have the first place",
        "repro/experiment.py",
        "program_place(options.results_dir / named.scale.name",
        "program_place(options.results_dir / scale.name",
        ("tests/test_library.py::test_rows_of_a_program_on_ones_own_text_are_in_that_order_too",),
    ),
    Defect(
        "two tasks of one text are one run",
        "repro/runs/recipe.py",
        "            **self._task,\n",
        "",
        ("tests/runs/test_task.py::test_it_goes_from_its_row_to_a_record",),
    ),
    # the list of claims, and numbers that cannot be
    Defect(
        "a record names the list of claims that is there at its end",
        "repro/runs/execution.py",
        "                done = replace(done, claims=claims)\n",
        "                done = replace(done, claims=catalogue_digest())\n",
        (f"{OF_RUN}a_run_that_goes_on_keeps_the_list_of_claims_of_its_beginning",),
    ),
    Defect(
        "a run that goes on takes the list of claims of today",
        FOLDER,
        '        execution, claims = before["execution"], before["claims"]\n',
        '        execution = before["execution"]\n',
        (
            f"{OF_FOLDER}the_list_of_claims_is_that_of_the_beginning_however_often_it_is_described",
            f"{OF_FOLDER}a_folder_of_the_time_before_never_gets_a_list",
            f"{OF_RUN}a_run_that_goes_on_keeps_the_list_of_claims_of_its_beginning[True]",
        ),
    ),
    Defect(
        "a run whose beginning nobody knows gets the list of claims of today",
        "repro/runs/execution.py",
        "            claims=None if self.last_step() else catalogue_digest(),",
        "            claims=catalogue_digest(),",
        (f"{OF_RUN}a_run_that_goes_on_keeps_the_list_of_claims_of_its_beginning[False]",),
    ),
    Defect(
        "perplexity may be another than that of the loss",
        RECORD,
        "(ppl <= 0 or abs(math.log(ppl) - nll) > SAME_PPL)",
        "ppl <= 0",
        (f"{OF_RECORD}a_number_beyond_its_range_is_refused_where_it_is_written_and_where_it_is_read",),
    ),
    Defect(
        "a number may be above its range",
        RECORD,
        "not low <= value <= high * (1 + ROUNDING)",
        "not low <= value",
        (f"{OF_RECORD}a_number_beyond_its_range_is_refused_where_it_is_written_and_where_it_is_read",),
    ),
    Defect(
        "a row of more updates is held against the base",
        "repro/results/curves.py",
        "    return next(alike, rows[0])\n",
        "    return rows[0]\n",
        ("tests/results/test_curves.py::test_a_row_is_beside_the_transformer_with_as_many_updates_else_the_base",),
    ),
    Defect(
        "curves that meet at a measurement do not cross",
        "repro/results/curves.py",
        "        if gap == 0:\n            touched = x if touched is None else touched\n            continue\n",
        "",
        ("tests/results/test_curves.py::test_where_two_curves_cross",),
    ),
    Defect(
        "a row that was not run changes nothing",
        TABLES,
        "runs[0].hyper[name] if runs else settings.get(name)",
        "runs[0].hyper[name] if runs else None",
        (f"{REPORT}a_row_without_a_run_shows_what_it_would_be",),
    ),
    Defect(
        "a page has no word for curves without a common stretch",
        "repro/pages/along_training.py",
        '    return [value if isinstance(value, str) else "" for value in values]\n',
        "    return [*values]\n",
        ("tests/pages/test_by_length.py::test_a_table_of_systems_says_where_curves_cross",),
    ),
    Defect(
        "a table takes the place of a page",
        ROWS,
        "table.name.lower() in TAKEN",
        "table.name == BASE_TABLE",
        (f"{OF_ROWS}a_table_that_cannot_be_a_folder_is_refused_before_anything_runs[claims]",),
    ),
    Defect(
        "words are taken for what the paper prints until a run has ended",
        ROWS,
        "            _refuse_no_numbers(row, table.name)\n",
        "            pass\n",
        (f"{OF_ROWS}what_the_paper_prints_is_numbers[None]",),
    ),
)
