"""Defects of writing, of the disk and of security, each with the tests that notice it."""

from faults.defect import Defect

DURABLE, CHECKPOINT = "repro/storage/atomic.py", "repro/training/checkpoint.py"
WRITING, SAVING = "tests/storage/test_atomic.py::", "tests/training/test_checkpoint.py::"
CRASHES, DISKS = "tests/faults/test_crashes.py::", "tests/faults/test_full_disks.py::"
RULES, SECURITY = "tests/test_rules.py::", "tests/test_security.py::"

DEFECTS: tuple[Defect, ...] = (
    # writing
    Defect(
        "a file takes its name before it is on the disk",
        DURABLE,
        "                file.push()\n            _compare",
        "            _compare",
        (
            WRITING + "test_a_crash_at_any_call_leaves_the_old_file_or_the_new",
            SAVING + "test_a_crash_at_any_call_of_saving_and_pruning",
            CRASHES + "test_a_table_after_a_crash_at_any_call",
        ),
    ),
    Defect(
        "the folder is not pushed to the disk",
        DURABLE,
        "            raise\n        _push_folder(path.parent)\n",
        "            raise\n",
        (
            WRITING + "test_a_crash_at_any_call_leaves_the_old_file_or_the_new",
            SAVING + "test_a_save_that_a_crash_undid_is_made_again",
        ),
    ),
    Defect(
        "a new folder is not pushed to the disk",
        DURABLE,
        "            _push_folder(folder.parent)\n",
        "            pass\n",
        (WRITING + "test_new_folders_survive_a_crash_too",),
    ),
    Defect(
        "a file is written in place",
        DURABLE,
        "partial = beside(path, PARTIAL)\n        try:",
        "partial = path\n        path.unlink(missing_ok=True)\n        try:",
        (
            WRITING + "test_a_crash_at_any_call_leaves_the_old_file_or_the_new",
            CRASHES + "test_a_full_disk_keeps_the_old_record",
        ),
    ),
    Defect(
        "the temporary file is on another file system",
        DURABLE,
        'return path.with_name(f"',
        'return Path(f"/tmp/',
        (WRITING + "test_the_partial_file_is_in_the_same_folder",),
    ),
    Defect(
        "the temporary name is the process's alone",
        DURABLE,
        ".{secrets.token_hex(4)}.{kind}",
        ".0.{kind}",
        (WRITING + "test_no_two_writers_share_a_name",),
    ),
    Defect(
        "what was written is not read back",
        DURABLE,
        "    if found != sha256:",
        "    if not found:",
        (
            WRITING + "test_a_disk_that_keeps_other_bytes_is_found_out",
            WRITING + "test_a_disk_that_keeps_fewer_bytes_is_found_out",
        ),
    ),
    Defect(
        "half a token stays on a full disk",
        DURABLE,
        "                os.ftruncate(self.file, self.end)  # whole",
        "                pass  # whole",
        (
            WRITING + "test_a_file_that_grows_on_a_full_disk",
            "tests/storage/test_journal.py::test_a_full_disk_leaves_no_half_line",
        ),
    ),
    Defect(
        "a torn line is not cut",
        "repro/storage/journal.py",
        "            self._file.cut(tail.offset)\n",
        "            self._file.end = tail.offset\n",
        (CRASHES + "test_a_journal_cut_off_at_every_byte_of_its_last_three_lines",),
    ),
    Defect(
        "a short write is taken for a whole one",
        DURABLE,
        "            rest = rest[n:]\n",
        "            break\n",
        (WRITING + "test_short_writes_go_on",),
    ),
    Defect(
        "an interrupted call is given up",
        DURABLE,
        "    except (InterruptedError, BlockingIOError):\n        return call(*arguments)",
        "    except (InterruptedError, BlockingIOError):\n        raise",
        (WRITING + "test_what_was_only_interrupted_is_tried_once_more",),
    ),
    Defect(
        "sweeping takes what living processes write",
        DURABLE,
        "if alone or is_abandoned(partial):",
        "if partial:",
        (WRITING + "test_sweeping_spares_those_who_live",),
    ),
    # checkpoints
    Defect(
        "a checkpoint's hash is not checked",
        CHECKPOINT,
        "        return file.read() == digest.digest()",
        "        return bool(digest)",
        (SAVING + "test_a_thousand_flipped_bytes_are_all_found", SAVING + "test_two_whole_checkpoints_are_always_kept"),
    ),
    Defect(
        "a checkpoint's hash leaves its header out",
        CHECKPOINT,
        "        digest = hashlib.sha256()\n",
        "        digest, rest = hashlib.sha256(file.read(64)), rest - 64\n        digest = hashlib.sha256(bytes(64))\n",
        (SAVING + "test_what_goes_in_comes_out",),
    ),
    Defect(
        "a checkpoint of another run is taken",
        CHECKPOINT,
        '    if about["run"] != run:',
        "    if not run:",
        (SAVING + "test_another_runs_checkpoint_is_refused",),
    ),
    Defect(
        "pruning counts damaged checkpoints",
        CHECKPOINT,
        "            whole += _is_whole(path)\n",
        "            whole += 1\n",
        (SAVING + "test_two_whole_checkpoints_are_always_kept",),
    ),
    Defect(
        "pruning keeps one checkpoint",
        CHECKPOINT,
        "SPARE = 2 ",
        "SPARE = 1 ",
        (SAVING + "test_two_whole_checkpoints_are_always_kept", CRASHES + "test_a_run_after_a_crash_at_any_call"),
    ),
    Defect(
        "saving makes a copy of all tensors first",
        CHECKPOINT,
        "tensors[name] = value.detach()  #",
        "tensors[name] = value.detach().clone()  #",
        (SAVING + "test_saving_holds_no_second_copy",),
    ),
    Defect(
        "the format changed and its number did not",
        CHECKPOINT,
        'if kind == "tensor":',
        'if kind == "array":',
        (SAVING + "test_the_format_reads_what_it_once_wrote",),
    ),
    # the disk
    Defect(
        "a full disk is bad input",
        "repro/runs/command.py",
        "    if isinstance(error, DiskError):\n        return DISK\n",
        "",
        (
            DISKS + "test_a_full_cache",
            DISKS + "test_a_folder_that_is_read_only_is_refused_before_any_work",
            "tests/test_experiment.py::test_a_folder_that_cannot_be_written_stops_before_any_work",
        ),
    ),
    Defect(
        "folders are tried after the text was prepared",
        "repro/runs/sweep.py",
        "            check_place(folder)\n",
        "            pass\n",
        (DISKS + "test_a_folder_that_is_read_only_is_refused_before_any_work",),
    ),
    Defect(
        "room is not counted twice",
        "repro/runs/workshop.py",
        "needed = max(0, sum(kept) - held) + max(kept, default=0)",
        "needed = max(0, sum(kept) - held)",
        (
            "tests/runs/test_sweep.py::test_needed_is_what_runs_keep_and_the_largest_twice",
            DISKS + "test_too_little_room_is_refused_before_a_run",
        ),
    ),
    Defect(
        "a damaged file of the cache is used",
        "repro/storage/folder_cache.py",
        "        if found != expected:",
        "        if not found:",
        ("tests/data/test_prepare.py::test_damage_is_noticed_and_mended",),
    ),
    # security
    Defect(
        "MLflow is imported before its reports are off",
        "repro/tracking/mirror.py",
        "        self.uri, self.client = uri, connect(uri)\n",
        "        import mlflow.entities\n\n        self.uri, self.client = uri, connect(uri)\n",
        (SECURITY + "test_the_whole_way_of_a_row",),
    ),
    Defect(
        "git is asked through a shell",
        "repro/results/provenance.py",
        '    command = ["git", "--no-optional-locks", *arguments]\n',
        '    command = ["sh", "-c", "git --no-optional-locks " + " ".join(arguments)]\n',
        (SECURITY + "test_the_whole_way_of_a_row",),
    ),
    Defect(
        "a module writes by itself",
        "repro/storage/signed_json.py",
        "    write_json(path, {**content, KEY: checksum(content)})",
        "    path.write_bytes(canonical({**content, KEY: checksum(content)}))",
        (RULES + "test_the_package_keeps_the_rule", CRASHES + "test_a_full_disk_keeps_the_old_record"),
    ),
    Defect(
        "a module passes a writer on",
        "repro/storage/signed_json.py",
        'KEY = "sha256"\n',
        'KEY = "sha256"\nfrom os import replace as take_name\n',
        (RULES + "test_one_module_writes",),
    ),
    Defect(
        "a module holds a pickle",
        "repro/storage/signed_json.py",
        "import hashlib\n",
        "import hashlib\nimport pickle\n",
        (RULES + "test_nothing_that_runs_code_is_imported",),
    ),
    Defect(
        "importing starts a thread",
        "repro/model/config.py",
        "from dataclasses import dataclass, fields\n",
        "from dataclasses import dataclass, fields\nimport threading\nthreading.Timer(9, print).start()\n",
        (SECURITY + "test_importing_starts_nothing_and_writes_nothing",),
    ),
    Defect(
        "names become paths as they stand",
        "repro/results/record.py",
        "    if re.fullmatch(PLAIN, name):",
        "    if name:",
        (
            "tests/results/test_record.py::test_a_record_stays_below_its_folder",
            "tests/results/test_record.py::test_a_slug_is_a_name_for_a_file",
        ),
    ),
    Defect(
        "names that differ in case share a path",
        "repro/results/record.py",
        'return f"{readable}--{',
        'return readable or f"{readable}--{',
        ("tests/results/test_record.py::test_two_names_never_share_a_slug",),
    ),
    Defect(
        "a name in Markdown is HTML",
        "repro/render/escape.py",
        '    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")',
        "    return text",
        (
            "tests/pages/test_build.py::test_a_name_in_markdown_is_text",
            "tests/data/test_datacard.py::test_what_a_name_holds_is_text",
        ),
    ),
    Defect(
        "a name in a sheet is a formula",
        "repro/pages/sheet.py",
        "    return sheet_text(value) if isinstance(value, str) else value",
        "    return value",
        ("tests/pages/test_build.py::test_a_name_in_a_sheet_is_no_formula",),
    ),
    Defect(
        "MLflow's page is for everybody",
        "repro/cli/ui.py",
        '["--host", LOOPBACK, "--port"',
        '["--host", "0.0.0.0", "--port"',
        ("tests/cli/test_ui.py::test_no_process_is_left_behind",),
    ),
    Defect(
        "an edited record is taken",
        "repro/storage/signed_json.py",
        "    if stated != counted:",
        "    if not stated:",
        (
            "tests/pages/test_build.py::test_an_edited_record_stops_the_tables",
            "tests/results/test_record.py::test_every_digit_is_guarded",
        ),
    ),
    Defect(
        "the plan depends on the hash seed",
        "repro/data/batching.py",
        'np.random.Philox(key=int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))',
        "np.random.Philox(key=hash(name) % 2**64)",
        ("tests/faults/test_surroundings.py::test_the_same_bytes_in_other_surroundings",),
    ),
    Defect(
        "a new file replaces that of a process that was faster",
        DURABLE,
        "            os.link(partial, path)",
        "            os.replace(partial, path)\n            return",
        (WRITING + "test_what_is_there_stays_where_only_a_new_file_is_wanted",),
    ),
    Defect(
        "two sweeps of a folder write its list of rows at once",
        "repro/results/frame.py",
        "    with in_turn(folder):\n        _note_rows(folder, rows)\n",
        "    _note_rows(folder, rows)\n",
        ("tests/results/test_frame.py::test_two_sweeps_that_note_their_rows_at_once_keep_those_of_both",),
    ),
    Defect(
        "pages are written of records that were read before another sweep ended",
        "repro/runs/sweep.py",
        "        with in_turn(folder):  # of several sweeps the last one to write pages has read the records of all\n",
        "        if True:\n",
        ("tests/runs/test_sweep.py::test_records_are_safe_before_mlflow_is_waited_for_and_views_are_made_once",),
    ),
    Defect(
        "a disk without locks ends a sweep",
        "repro/storage/turn.py",
        "                return  # no locks here\n",
        "                raise\n",
        ("tests/storage/test_turn.py::test_a_disk_without_locks_keeps_nobody_waiting",),
    ),
)
