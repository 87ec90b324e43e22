"""Defects of shards and of Slurm arrays, each with the tests that notice it."""

from faults.defect import Defect

ROWS, OF_ROWS = "repro/runs/table.py", "tests/runs/test_table.py::test_"
SWEEP, OF_SWEEP = "repro/runs/sweep.py", "tests/runs/test_sweep.py::test_"
SCRIPT, OF_SCRIPT = "repro/runs/executors/slurm_array.py", "tests/runs/executors/test_slurm_array.py::test_"
ARRAY, OF_ARRAY = "repro/runs/executors/slurm.py", "tests/runs/executors/test_slurm.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "shards are counted from nought",
        ROWS,
        "asked[i - 1 :: n]",
        "asked[i::n]",
        (f"{OF_ROWS}a_shard_is_every_nth_run_from_the_ith_on", f"{OF_ROWS}the_shards_of_a_sweep_hold_each_run_once"),
    ),
    Defect(
        "a shard beyond the last one is none at all",
        ROWS,
        "if not 1 <= i <= n:",
        "if not found:",
        (f"{OF_ROWS}what_is_no_shard_is_refused",),
    ),
    Defect(
        "a shard of one's own text names the folder after its own runs",
        "repro/runs/workshop.py",
        "namesake = usual if usual in self._tasks else self._tasks[0]",
        "namesake = next(iter(self.texts))",
        (f"{OF_SWEEP}shards_make_the_sweep_and_say_which_they_are",),
    ),
    Defect(
        "the warning before a task's limit stays with the shell",
        SCRIPT,
        """heard=1; [ -z "$run" ] || kill -USR1 "$run" 2>/dev/null""",
        "heard=1",
        (f"{OF_SCRIPT}the_warning_before_the_limit_is_passed_on_once",),
    ),
    Defect(
        "a task is told twice that it is cancelled",
        SCRIPT,
        "trap 'heard=1' TERM",
        """trap 'heard=1; kill -TERM "$run"' TERM""",
        (f"{OF_SCRIPT}what_goes_to_all_processes_is_not_passed_on",),
    ),
    Defect(
        "a task that was cancelled queues itself again",
        SCRIPT,
        '--format=%T)" != RUNNING ]',
        '--format=%T)" = PENDING ]',
        (f"{OF_SCRIPT}what_may_end_otherwise_is_queued_again_and_nothing_else",),
    ),
    Defect(
        "what fails is queued again for ever",
        SCRIPT,
        '*) exit "$code" ;;',
        "*) most=99 ;;",
        (f"{OF_SCRIPT}what_may_end_otherwise_is_queued_again_and_nothing_else",),
    ),
    Defect(
        "the exit code of a task is that of the wait that a signal broke off",
        SCRIPT,
        'while [ -z "$code" ] || [ -n "$heard" ]; do',
        'while [ -z "$code" ]; do',
        (f"{OF_SCRIPT}the_warning_before_the_limit_is_passed_on_once",),
    ),
    Defect(
        "folders stand in the script as they are called",
        SCRIPT,
        '"cwd": shlex.quote(str(self.cwd)),',
        '"cwd": str(self.cwd),',
        (f"{OF_SCRIPT}words_and_folders_arrive_as_they_are",),
    ),
    Defect(
        "a queue that does not answer is an empty one",
        ARRAY,
        "    if said.returncode:\n        return None\n",
        "",
        (f"{OF_ARRAY}a_queue_that_does_not_answer_for_a_while_is_asked_again",),
    ),
    Defect(
        "what is in the queue is submitted again",
        ARRAY,
        "tasks & found.keys(), tasks - found.keys()",
        "tasks & found.keys(), set(tasks)",
        (
            f"{OF_ARRAY}what_is_in_the_queue_is_not_submitted_twice",
            f"{OF_ARRAY}of_an_array_that_is_half_there_the_rest_is_submitted",
        ),
    ),
    Defect(
        "the exit code of an earlier attempt counts",
        ARRAY,
        "END.findall(end_of(log).rpartition(BEGIN)[2])",
        "END.findall(end_of(log))",
        (f"{OF_ARRAY}a_run_without_a_record_is_named_with_the_end_of_its_log",),
    ),
    Defect(
        "a record that a network disk shows late is missed",
        ARRAY,
        "if not code and seconds < LATE:",
        "if False:",
        (f"{OF_ARRAY}a_record_that_becomes_visible_late_counts",),
    ),
    Defect(
        "an array goes by the words alone, wherever it was typed",
        ARRAY,
        "json.dumps([str(Path(script).resolve()), str(folder), decides]",
        "json.dumps([str(Path(script).resolve()), options.typed.get('seeds', 1)]",
        (f"{OF_ARRAY}the_same_command_has_the_same_name_and_another_one_another",),
    ),
)
