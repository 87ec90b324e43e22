"""Defects of what a run meets: flipped bits, odd systems, names and consoles; each with the tests that notice it."""

from faults.defect import Defect

JOURNAL, TRACKING, TERMINAL = "tests/storage/test_journal.py::", "tests/tracking/", "tests/render/test_console.py::"
LAUNCH = "tests/runs/test_launch.py::"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a line's checksum is not held against it",
        "repro/storage/journal.py",
        "zlib.crc32(checked[2]) == int(checked[1], 16) if checked",
        "True if checked",
        (JOURNAL + "test_each_flipped_bit_is_noticed", JOURNAL + "test_whoever_removes_a_damaged_line_can_go_on"),
    ),
    Defect(
        "a damaged line feed makes a line a torn one",
        "repro/storage/journal.py",
        'if b"}" in text[:-1] and not',
        "if False and not",
        (JOURNAL + "test_each_flipped_bit_is_noticed",),
    ),
    Defect(
        "lines without a checksum count for ever, however they begin",
        "repro/storage/journal.py",
        "else text.startswith(UNCHECKED)",
        "else True",
        (JOURNAL + "test_each_flipped_bit_is_noticed",),
    ),
    Defect(
        "MLflow's database is where its address says",
        "repro/tracking/client.py",
        'return URL.create("sqlite", database=str(path)).render_as_string()',
        'return f"sqlite:///{path}"',
        (TRACKING + "test_client.py::test_a_file_may_have_any_name",),
    ),
    Defect(
        "MLflow is told of times before 1970",
        "repro/tracking/run_folder.py",
        'max(0, round(line["time"] * 1000))',
        'round(line["time"] * 1000)',
        (TRACKING + "test_mirror.py::test_a_clock_before_1970_costs_the_times_alone",),
    ),
    Defect(
        "a damaged owner file stops every attempt",
        "repro/storage/lease.py",
        "    except (OSError, ValueError, RecursionError):\n        return {}",
        "    except OSError:\n        return {}",
        (
            "tests/storage/test_lease.py::test_after_a_damaged_owner_the_same_command_goes_on",
            "tests/storage/test_lease.py::test_an_owner_whose_file_is_damaged_is_still_heard",
        ),
    ),
    Defect(
        "an owner's checksum is not asked",
        "repro/storage/lease.py",
        'return signed_json.read(attempt / _OWNER, "an owner", FORMAT)',
        'return __import__("json").loads((attempt / _OWNER).read_bytes())',
        ("tests/storage/test_lease.py::test_no_flipped_bit_makes_the_living_dead",),
    ),
    Defect(
        "a peak that was not reset is taken for the run's",
        "repro/training/cpu_tuning.py",
        "                self.is_known = False\n",
        "                pass\n",
        (
            "tests/training/test_cpu_tuning.py::test_a_peak_that_cannot_be_measured_is_unknown_and_stops_nothing",
            "tests/faults/test_surroundings.py::test_a_read_only_proc_stops_nothing",
        ),
    ),
    Defect(
        "only runs are swept",
        "repro/runs/sweep.py",
        "            atomic.sweep(folder, alone=False)\n",
        "",
        ("tests/faults/test_full_disks.py::test_what_a_killed_process_left_is_swept",),
    ),
    Defect(
        "room is counted in bytes alone",
        "repro/runs/workshop.py",
        "if inodes is not None and inodes < files:",
        "if inodes is not None and inodes < 0:",
        ("tests/faults/test_full_disks.py::test_too_few_inodes_are_refused_before_a_run",),
    ),
    Defect(
        "a disk without inodes is a full one",
        "repro/storage/atomic.py",
        "if error.errno == errno.ENOSPC and free_files(path) == 0:",
        "if error.errno == errno.ENOSPC and free_files(path) == -1:",
        ("tests/storage/test_atomic.py::test_a_disk_without_inodes",),
    ),
    Defect(
        "a console that knows ASCII alone ends a run",
        "repro/render/console.py",
        "stream.reconfigure(errors=ERRORS)",
        "pass",
        (TERMINAL + "test_hostile_text_is_shown_as_text_on_any_console[ascii]",),
    ),
    Defect(
        "a terminal obeys what a name holds",
        "repro/render/console.py",
        "self.beneath.write(shown(text))",
        "self.beneath.write(text)",
        (TERMINAL + "test_hostile_text_is_shown_as_text_on_any_console[utf-8]",),
    ),
    Defect(
        "a terminal obeys what a run's name holds",
        "repro/runs/progress.py",
        "self.console.print(shown(text), markup",
        "self.console.print(text, markup",
        (TERMINAL + "test_hostile_text_is_shown_as_text_on_any_console[utf-8]",),
    ),
    Defect(
        "a file gets the number of a closed stream",
        "repro/render/console.py",
        "            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)",
        "            pass",
        (TERMINAL + "test_closed_streams_cost_nothing_and_no_file_gets_their_place",),
    ),
    Defect(
        "what is left of a launcher is believed",
        "repro/runs/launch.py",
        "    if left:\n",
        "    if not ALONE:\n",
        (LAUNCH + "test_what_cannot_be_is_refused_with_what_to_type",),
    ),
    Defect(
        "a number without a launcher keeps --devices from starting any",
        "repro/experiment.py",
        "if options.processes > 1 and peer is None and",
        'if options.processes > 1 and "LOCAL_RANK" not in os.environ and',
        (LAUNCH + "test_zero_of_one_starts_its_own",),
    ),
)
