"""Defects that the person at the keyboard would meet, each with the tests that notice it."""

from faults.defect import Defect

OF_COMMAND, OF_SIGNALS, OF_PROGRESS, OF_LATEST = (
    f"tests/{name}.py::test_"
    for name in ("runs/test_command", "runs/test_signals", "runs/test_progress", "results/test_latest")
)
OF_DECODING = "tests/cli/test_decode.py::test_"
OF_COMMANDS, OF_OPTIONS = "tests/cli/test_commands.py::test_", "tests/runs/test_options.py::test_"
OF_DOCUMENTS = "tests/test_project.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the answer to a signal is drawn over",
        "repro/runs/signals.py",
        'below = b"\\n\\n" if os.isatty(2)',
        'below = b"\\n" if os.isatty(2)',
        (f"{OF_PROGRESS}the_answer_to_a_signal_stays_under_moving_lines[5]",),
    ),
    Defect(
        "the answer to a signal goes through a stream",
        "repro/runs/signals.py",
        'os.write(2, b"\\n" + words + below)',
        "sys.stderr.buffer.write(words + below)",
        (f"{OF_SIGNALS}the_answer_waits_for_no_stream",),
    ),
    Defect(
        "an answer that nobody reads ends the run",
        "repro/runs/signals.py",
        "with suppress(OSError):  # nobody",
        "with suppress(ValueError):  # nobody",
        (f"{OF_SIGNALS}where_nobody_reads_the_answer_it_is_obeyed",),
    ),
    Defect(
        "a pager that ends takes the run with it",
        "repro/runs/streams.py",
        "if error.errno in GONE:",
        "if error.errno in GONE:\n                raise\n            if not error:",
        (f"{OF_COMMAND}training_goes_on_without_its_reader[False]",),
    ),
    Defect(
        "the end of a pager is an error",
        "repro/runs/command.py",
        "    except BrokenPipeError:\n        streams.lead_nowhere(1)\n        return",
        "    except ZeroDivisionError:\n        streams.lead_nowhere(1)\n        return",
        (f"{OF_COMMAND}a_command_ends_quietly_with_its_reader[1]",),
    ),
    Defect(
        "a log that has no room takes the run with it",
        "repro/runs/streams.py",
        'said = f"The output cannot be written (',
        'raise\n                said = f"The output cannot be written (',
        (
            f"{OF_COMMAND}training_goes_on_without_room_for_its_output[False-]",
            f"{OF_COMMAND}the_output_of_training_goes_on_where_there_is_room_again",
        ),
    ),
    Defect(
        "what has no room is said twice",
        "repro/runs/streams.py",
        "            lead_nowhere(self.fileno())  # what is left in the buffer would complain once more\n",
        "",
        (f"{OF_COMMAND}a_command_whose_output_has_no_room_says_so_once[1-]",),
    ),
    Defect(
        "a worker keeps to itself what it cannot log",
        "repro/runs/executors/worker.py",
        "    outlive_reader()  # the disk",
        "    # the disk",
        ("tests/runs/executors/test_workers.py::test_what_went_wrong_is_told_though_there_is_no_room_for_the_log",),
    ),
    Defect(
        "an abbreviation is an option",
        "repro/runs/command.py",
        "super().__init__(**settings, allow_abbrev=False)",
        "super().__init__(**settings)",
        (f"{OF_COMMAND}a_command_of_several_names_its_own_options",),
    ),
    Defect(
        "torch comes before the first word",
        "repro/experiment.py",
        "        streams.outlive_reader()\n",
        "        import torch  # noqa: F401\n        streams.outlive_reader()\n",
        (f"{OF_COMMAND}something_is_said_before_what_takes_seconds",),
    ),
    Defect(
        "latest is a run that diverged",
        "repro/results/latest.py",
        'if record.load(file).status == "finished":',
        "if record.load(file):",
        (f"{OF_LATEST}a_run_is_found_by_what_is_typed",),
    ),
    Defect(
        "latest is the last by name",
        "repro/results/latest.py",
        "key=lambda file: file.stat().st_mtime_ns",
        "key=lambda file: file.parent.name",
        (f"{OF_LATEST}latest_is_what_ended_last_whatever_its_name",),
    ),
    Defect(
        "the first of several runs is taken",
        "repro/results/latest.py",
        "if len(found) == 1:",
        "if found:",
        (f"{OF_LATEST}what_means_no_run_or_several_is_named",),
    ),
    Defect(
        "any tokenizer of the run's folder is taken",
        "repro/runs/load.py",
        "if hashlib.sha256(file.read_bytes()).hexdigest() == sha256:",
        "if file == own or hashlib.sha256(file.read_bytes()).hexdigest() == sha256:",
        (f"{OF_DECODING}an_older_run_has_its_tokenizer_from_the_cache",),
    ),
    Defect(
        "an export that fails leaves half a folder",
        "repro/runs/export.py",
        "    made_once(place, fill)\n",
        "    atomic.make_folder(place)\n    fill(place)\n",
        (f"{OF_DECODING}an_export_that_failed_half_way_is_repeated[False]",),
    ),
    Defect(
        "an export takes the place of anything",
        "repro/runs/export.py",
        "_exported(place) != (run.run, to):",
        "not place.is_dir():",
        (f"{OF_DECODING}what_an_export_does_not_know_is_let_be",),
    ),
    Defect(
        "a value of before is passed on as it was",
        "repro/runs/command.py",
        "today = [values.get(one, one) for one in before]",
        "today = before",
        (f"{OF_COMMAND}names_of_before_are_said_as_today", f"{OF_OPTIONS}names_of_before_are_understood_and_corrected"),
    ),
    Defect(
        "a folder is called by the new name of an old setting",
        "repro/runs/options.py",
        'f"by-{RECORDED[chosen.batch_by]}"',
        'f"by-{chosen.batch_by}"',
        (f"{OF_OPTIONS}other_settings_have_a_name_of_their_own",),
    ),
    Defect(
        "a default is stated twice",
        "repro/runs/options.py",
        '            settings["default"] = default',
        '            settings["default"] = "smoke" if name == "scale" else default',
        (f"{OF_OPTIONS}the_command_line_is_made_of_the_fields",),
    ),
    Defect(
        "a long form loses its exit code",
        "repro/cli/commands.py",
        "sys.exit(ended(lambda: main(words)))",
        "ended(lambda: main(words))",
        (f"{OF_COMMANDS}a_long_form_does_the_same_and_says_the_short_one",),
    ),
    Defect(
        "what a long form says comes into its output",
        "repro/cli/commands.py",
        '{ours(*words)}", file=sys.stderr, flush=True)',
        '{ours(*words)}", flush=True)',
        (f"{OF_COMMANDS}a_long_form_does_the_same_and_says_the_short_one",),
    ),
    Defect(
        "a command's help brings SciPy",
        "repro/cli/report.py",
        "from repro.storage.atomic import DiskError, write_text\n",
        "from repro.pages import build  # noqa: F401\nfrom repro.storage.atomic import DiskError, write_text\n",
        (f"{OF_COMMANDS}help_answers_at_once",),
    ),
    Defect(
        "the page of the data's way is of yesterday",
        "docs/data_flow.py",
        "The data goes one way. Imports",
        "The data goes two ways. Imports",
        (f"{OF_DOCUMENTS}the_way_of_the_data_is_what_the_modules_say",),
    ),
)
