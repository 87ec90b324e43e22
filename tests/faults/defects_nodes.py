"""Defects of runs of several processes, on one node or many, and the tests that must notice them."""

from faults.defect import Defect

LAUNCH, GROUP, WORDS = "repro/runs/launch.py", "repro/training/group.py", "repro/training/talk.py"
FINDS = "tests/runs/test_launch.py::test_a_process_finds_who_it_is"
TALKS = "tests/training/test_group.py::"
GOES_ON = f"{TALKS}test_nodes_without_a_common_folder_go_on_from_what_the_first_one_has"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "each node reads the checkpoint from its own folder",
        "repro/training/loop.py",
        "group.shared if group else None",
        "None",
        (GOES_ON,),
    ),
    Defect(
        "the shell of a job is taken for one of its tasks",
        LAUNCH,
        'tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")',
        'tasks = environment.get("SLURM_NTASKS", "1")',
        (FINDS,),
    ),
    Defect(
        "two nodes of one process are taken for one node of two",
        LAUNCH,
        "        nodes=own,\n",
        "        nodes=1,\n",
        (FINDS,),
    ),
    Defect(
        "what next after two nodes is refused when it is typed",
        "repro/runs/sweep.py",
        "    if peer is not None and peer.nodes > 1:\n",
        "    if False:\n",
        ("tests/runs/test_sweep.py::test_what_next_starts_the_processes_of_many_nodes",),
    ),
    Defect(
        "two torchruns that know nothing of each other train the same",
        LAUNCH,
        'if tasks != "1" and found.nodes == 1:',
        "if False:",
        ("tests/runs/test_launch.py::test_what_cannot_be_is_refused_with_what_to_type",),
    ),
    Defect(
        "a process that falls silent is waited for",
        WORDS,
        "elif time.monotonic() - since > PATIENCE.total_seconds():",
        "elif False:",
        (f"{TALKS}test_who_fails_says_why_and_who_falls_silent_is_named",),
    ),
    Defect(
        "a checkpoint of a model in parts has the first part alone",
        "repro/training/sharded.py",
        "full = value.full_tensor()",
        "full = value.to_local()",
        (f"{TALKS}test_a_model_in_parts_loses_as_a_whole_one_and_either_goes_on_from_the_other",),
    ),
    Defect(
        "the first process leaves before the others have heard",
        WORDS,
        "if error is None and self.peer.is_first:",
        "if False:",
        (f"{TALKS}test_the_first_stays_until_all_have_heard",),
    ),
    Defect(
        "Lightning says how many threads a run of several processes has",
        "repro/training/loop.py",
        '    os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))\n',
        "    is_said = True\n",
        (f"{TALKS}test_threads_are_those_of_the_run_and_not_lightnings_share_of_the_processors",),
    ),
)
