"""Defects of what makes runs on other machines, each with the tests that must notice it."""

from faults.defect import Defect

COURIER = "repro/runs/executors/courier.py"
TESTS = "tests/runs/executors/test_courier.py"

DEFECTS: tuple[Defect, ...] = (
    # runs of several processes
    Defect(
        "the processes of a worker make another run of the sweep",
        "repro/runs/executors/together.py",
        "workshop.whole.index(shard_of(workshop.whole, options.shard)[cell]) + 1",
        "cell + 1",
        ("tests/runs/executors/test_together.py::test_the_processes_make_that_run_alone",),
    ),
    Defect(
        "the processes of a worker are never told to stop",
        "repro/runs/executors/together.py",
        "if not asked and should_stop()",
        "if asked and should_stop()",
        ("tests/runs/executors/test_together.py::test_asked_to_stop_the_launcher_hears_it_once",),
    ),
    Defect(
        "processes go on when what started them was killed",
        "repro/runs/signals.py",
        " or self._launcher not in (None, os.getppid())",
        "",
        ("tests/runs/test_signals.py::test_a_process_whose_launcher_is_lost_stops",),
    ),
    Defect(
        "half a line of a journal travels",
        COURIER,
        'return data[: data.rfind(b"\\n") + 1]',
        "return data",
        (f"{TESTS}::test_half_a_line_stays_where_it_is",),
    ),
    Defect(
        "a record is lost between worker and driver",
        COURIER,
        "        looked[name], room = state, room - len(data)\n",
        "        looked[name], room = state, room - len(data)\n        if name == RECORD:\n            continue\n",
        (f"{TESTS}::test_the_record_comes_after_all_else",),
    ),
    Defect(
        "a record comes before its checkpoints",
        COURIER,
        "or (left and name == RECORD)",
        "or (left and name == 'nothing')",
        (f"{TESTS}::test_the_record_comes_after_all_else",),
    ),
    Defect(
        "a checkpoint goes before the next has come",
        COURIER,
        "gone = [] if left else sorted",
        "gone = sorted",
        (f"{TESTS}::test_no_checkpoint_is_gone_before_the_next_has_come",),
    ),
    Defect(
        "a node may name any file",
        COURIER,
        "if not NAME.fullmatch(name) or len(name) > LONGEST:",
        "if len(name) > LONGEST:",
        (f"{TESTS}::test_a_name_that_is_none_is_refused",),
    ),
    Defect(
        "what was damaged on its way is kept",
        COURIER,
        'if hashlib.sha256(piece["data"]).hexdigest() != piece["sha256"]:',
        'if len(piece["data"]) < 0:',
        (f"{TESTS}::test_damage_on_the_way_is_found_before_anything_is_written",),
    ),
    Defect(
        "a journal may have a gap",
        COURIER,
        "if at is not None and (there := _size(path)) != at:",
        "if at is not None and (there := _size(path)) > at + 2**40:",
        (f"{TESTS}::test_a_gap_in_a_journal_is_refused",),
    ),
    Defect(
        "a driver that was replaced writes on",
        COURIER,
        '    for piece in parcel["pieces"]:\n        check()\n',
        '    for piece in parcel["pieces"]:\n',
        (f"{TESTS}::test_who_was_replaced_writes_nothing",),
    ),
    Defect(
        "a text may name any path",
        "repro/runs/executors/luggage.py",
        "or not all(PART.fullmatch(part) for part in parts):",
        "or not parts:",
        ("tests/runs/executors/test_luggage.py::test_a_path_that_leads_out_is_refused",),
    ),
    Defect(
        "a text is not held against its hash",
        "repro/runs/executors/luggage.py",
        'if opened.sha256.hexdigest() != file["sha256"]:',
        "if not opened.sha256.hexdigest():",
        ("tests/runs/executors/test_luggage.py::test_damage_and_want_of_room_are_named",),
    ),
    Defect(
        "a node may have other versions",
        "repro/runs/executors/cluster.py",
        "for name in here if there[name] != here[name]]",
        "for name in here if not there[name]]",
        ("tests/runs/executors/test_cluster.py::test_a_node_of_other_versions_is_refused_with_both",),
    ),
    Defect(
        "a Ray that is started here listens to the network",
        "repro/runs/executors/cluster.py",
        'ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}',
        "ON_LOOPBACK: dict[str, str] = {}",
        ("tests/runs/executors/test_on_ray.py::test_a_node_that_sees_no_folder_makes_the_same_run",),
    ),
)
