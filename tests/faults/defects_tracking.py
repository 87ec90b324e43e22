"""Defects of the journal and of its mirror in MLflow, each with the tests that notice it."""

from faults.defect import Defect

JOURNAL, FOLDER = "repro/journal.py", "repro/tracking/folder.py"
MIRROR, STORE = "repro/tracking/mirror.py", "repro/tracking/store.py"
RECORD_FIRST = "tests/test_sweep.py::test_records_are_safe_before_mlflow_is_waited_for_and_views_are_made_once"
OF_JOURNAL, OF_MIRROR, OF_FAULTS, OF_STORE = (
    f"tests/{name}.py::test_"
    for name in ("test_journal", "tracking/test_mirror", "tracking/test_faults", "tracking/test_store")
)

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the journal is read whole",
        JOURNAL,
        "for text in file:",
        "for text in file.readlines():",
        (f"{OF_JOURNAL}a_long_journal_takes_no_memory",),
    ),
    Defect(
        "an integer that no float holds ends the run",
        JOURNAL,
        "except OverflowError:",
        "except ZeroDivisionError:",
        (f"{OF_JOURNAL}any_number_is_strict_json_and_reads_back",),
    ),
    Defect(
        "any name is written",
        JOURNAL,
        'if not re.fullmatch(r"[A-Za-z0-9_]{1,100}", name)',
        'if not re.match(r"[A-Za-z0-9_]{1,100}", name)',
        (f"{OF_JOURNAL}any_name_is_written_or_refused_before_anything_is",),
    ),
    Defect(
        "appending opens a database",
        JOURNAL,
        "        self._file.append(encoded(",
        '        __import__("sqlite3").connect(":memory:").close()\n        self._file.append(encoded(',
        (f"{OF_JOURNAL}appending_reaches_for_no_network",),
    ),
    Defect(
        "a repeated step is sent again",
        MIRROR,
        'if line["step"] in steps:',
        'if line["step"] in steps and not steps:',
        (f"{OF_FAULTS}a_killed_run_does_not_stay_running",),
    ),
    Defect(
        "a point is given the time of its sending",
        MIRROR,
        "Metric(p.key, p.value, p.time, p.step)",
        "Metric(p.key, p.value, round(time.time() * 1000), p.step)",
        (f"{OF_MIRROR}mlflow_shows_exactly_the_folder_and_twice_is_once",),
    ),
    Defect(
        "an error of the tracker ends the mirror",
        MIRROR,
        "except Exception as error:  # whatever the tracker does, training goes on",
        "except MemoryError as error:",
        (f"{OF_FAULTS}a_tracker_that_breaks_is_caught_up_with[500]",),
    ),
    Defect(
        "two copies of a journal are mixed",
        MIRROR,
        "elif stored != point.time and point not in self._printed:",
        "elif stored < 0:",
        (f"{OF_FAULTS}a_stale_copy_that_goes_on_is_refused",),
    ),
    Defect(
        "two executions of a run are one",
        MIRROR,
        '"repro.execution": run["execution"]}',
        '"repro.execution": run["run"]}',
        (f"{OF_FAULTS}another_execution_of_the_run_is_not_mixed_in",),
    ),
    Defect(
        "two runs of one are kept",
        MIRROR,
        "for other in others:",
        "for other in others[:0]:",
        (f"{OF_FAULTS}two_that_make_a_run_at_once_agree_on_one",),
    ),
    Defect(
        "a failed run is called killed",
        MIRROR,
        'if (status, remote.status) != ("KILLED", "FAILED"):',
        "if status:",
        (f"{OF_FAULTS}a_run_that_failed_stays_failed",),
    ),
    Defect(
        "a dead run stays RUNNING",
        FOLDER,
        'return "RUNNING" if is_training(folder) else "KILLED"',
        'return "RUNNING"',
        (
            f"{OF_FAULTS}a_killed_run_does_not_stay_running",
            f"{OF_MIRROR}killed_half_way_and_repeated_it_is_exactly_the_journal",
        ),
    ),
    Defect(
        "a diverged run is called finished",
        FOLDER,
        'return "FINISHED" if status == "finished" else "FAILED"',
        'return "FINISHED"',
        (f"{OF_FAULTS}runs_of_another_machine_come_with_their_journals",),
    ),
    Defect(
        "a deleted experiment stays deleted",
        STORE,
        'if found.lifecycle_stage == "deleted":',
        'if found.lifecycle_stage == "gone":',
        (f"{OF_FAULTS}what_is_deleted_in_mlflow_is_made_again[experiment]",),
    ),
    Defect(
        "a replaced database is not noticed",
        STORE,
        "if not path.exists() or _opened(path)[1] != _identity(path):",
        "if not path.exists():",
        (f"{OF_FAULTS}a_lost_database_is_never_written_to[replaced]",),
    ),
    Defect(
        "passwords are shown",
        STORE,
        'return re.sub(r"(?<=://)\\S*@|(?<=\\?)\\S+", "***", text)',
        "return text",
        (f"{OF_FAULTS}an_address_with_a_password_is_refused[http://user:hush@{{host}}]",),
    ),
    Defect(
        "MLflow's password is shown",
        STORE,
        'text = text.replace(secret, "***")',
        "pass",
        (f"{OF_FAULTS}no_password_reaches_a_file_or_a_message[no such thing: {{password}}]",),
    ),
    Defect(
        "MLflow makes its tables in the file itself",
        STORE,
        "if not path.exists() or not path.stat().st_size:",
        "if path is None:",
        (f"{OF_STORE}a_new_database_is_absent_or_whole",),
    ),
    Defect(
        "the log of a lost database is mixed with the new one",
        STORE,
        "                lost.unlink(missing_ok=True)",
        "                pass",
        (f"{OF_STORE}a_new_database_is_absent_or_whole",),
    ),
    Defect(
        "half of a broken database stays in the way",
        STORE,
        "for one in (aside, path, *_beside(path)))",
        "for one in (aside, path))",
        (f"{OF_STORE}the_remedy_for_a_half_made_database_works_as_it_is_printed",),
    ),
    Defect(
        "a database that others hold is moved away",
        STORE,
        "if _is_of_the_surroundings(error):",
        "if error is None:",
        (f"{OF_STORE}a_database_that_others_hold_is_not_called_broken",),
    ),
    Defect(
        "what killed processes left of a database stays",
        STORE,
        "if durable.is_abandoned(left):",
        "if left is None:",
        (f"{OF_STORE}what_killed_processes_left_of_a_new_database_is_swept",),
    ),
    Defect(
        "the record waits for MLflow",
        "repro/run.py",
        'done.save(self.folder / "record.json")  # before anybody waits for MLflow',
        "pass",
        (RECORD_FIRST,),
    ),
    Defect(
        "MLflow's name for a short run is forgotten",
        "repro/run.py",
        'if mirror.run_id != done.stamp["mlflow_run"]:',
        "if mirror is None:",
        (RECORD_FIRST,),
    ),
    Defect(
        "each run waits for a tracker that did not answer",
        "repro/tracking/tracker.py",
        "        self.patience = 0.0\n",
        "",
        ("tests/tracking/test_tracker.py::test_after_one_wait_in_vain_nothing_is_waited_for",),
    ),
    Defect(
        "a view that never comes is waited for",
        "repro/tracking/tracker.py",
        "        thread.join(patience)",
        "        thread.join(60)",
        ("tests/tracking/test_tracker.py::test_views_are_made_apart",),
    ),
)
