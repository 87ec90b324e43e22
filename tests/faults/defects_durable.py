"""Defects of writing, of the disk and of security, each with the tests that notice it."""

from faults.defect import Defect

DURABLE, CHECKPOINT = "repro/durable.py", "repro/training/checkpoint.py"
WRITING, SAVING, CRASHES = (
    "tests/test_durable.py::",
    "tests/training/test_checkpoint.py::",
    "tests/faults/test_crashes.py::",
)

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
        "half a piece stays on a full disk",
        DURABLE,
        "                os.ftruncate(self.file, self.end)  # whole",
        "                pass  # whole",
        (
            WRITING + "test_a_file_that_grows_on_a_full_disk",
            "tests/test_journal.py::test_a_full_disk_leaves_no_half_line",
        ),
    ),
    Defect(
        "a torn line is not cut",
        "repro/journal.py",
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
)
