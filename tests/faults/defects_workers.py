"""Defects of who makes the runs of a sweep: the dispatcher, the workers, and what they tell each other."""

from faults.defect import Defect

EXECUTORS = "repro/runs/executors"
DISPATCH, WORKER, WORKERS = f"{EXECUTORS}/dispatch.py", f"{EXECUTORS}/worker.py", f"{EXECUTORS}/workers.py"
OF_DISPATCH = "tests/runs/executors/test_dispatch.py::test_"
OF_WORKERS = "tests/runs/executors/test_workers.py::test_"

DEFECTS = (
    Defect(
        "who measured is waited for before it makes",
        DISPATCH,
        "self.slots = dispatcher.slots  # who",
        "self.slots = [_Slot(one.worker, one.lane) for one in dispatcher.slots]  # who",
        (f"{OF_DISPATCH}who_has_measured_goes_on_to_make",),
    ),
    Defect(
        "a run is given to two workers",
        DISPATCH,
        "                self._give(slot, self.waiting.popleft())",
        "                self._give(slot, self.waiting[0] if slot is self.slots[-1] else self.waiting.popleft())",
        (f"{OF_DISPATCH}each_run_is_given_once_and_known_by_its_id",),
    ),
    Defect(
        "the run of a dead worker is forgotten",
        DISPATCH,
        'takes its place{from_there}.")\n            self.waiting.appendleft(work)',
        'takes its place{from_there}.")',
        (f"{OF_DISPATCH}who_dies_is_replaced_and_the_run_goes_on",),
    ),
    Defect(
        "a run that kills every worker is tried for ever",
        DISPATCH,
        "if self.fruitless[work.cell] >= FRUITLESS:",
        "if self.fruitless[work.cell] >= 5 * FRUITLESS:",
        (f"{OF_DISPATCH}a_run_that_kills_every_worker_is_left_out_and_the_others_are_made",),
    ),
    Defect(
        "progress counts for nothing",
        DISPATCH,
        "                self.fruitless[slot.work.cell] = 0\n",
        "                pass\n",
        (f"{OF_DISPATCH}workers_that_get_on_with_a_run_may_die_as_often_as_they_like",),
    ),
    Defect(
        "want of memory is tried again beside others",
        DISPATCH,
        "            self.alone.append(work)\n            return\n        record",
        "            self.waiting.append(work)\n            return\n        record",
        (f"{OF_DISPATCH}want_of_memory_is_tried_again_alone_and_once",),
    ),
    Defect(
        "a record is lost between worker and sweep",
        DISPATCH,
        "            code = FAILED\n        yield",
        "            code = 0\n        yield",
        (f"{OF_DISPATCH}a_record_that_is_lost_on_the_way_is_a_failure",),
    ),
    Defect(
        "the time in which the sweep was stopped counts",
        DISPATCH,
        "self.clock + min(now - looked, 2 * LOOK_EVERY), now",
        "self.clock + (now - looked), now",
        (f"{OF_DISPATCH}time_in_which_the_sweep_itself_was_stopped_is_no_silence",),
    ),
    Defect(
        "after a signal more is begun",
        DISPATCH,
        "if self.dispatcher.signals.should_stop() and not self.asked_to_stop:",
        "if False:",
        (f"{OF_DISPATCH}a_signal_stops_all_and_nothing_more_is_begun",),
    ),
    Defect(
        "a worker that somebody stopped stops the sweep",
        DISPATCH,
        "if code > 128 and not self.dispatcher.signals.should_stop():",
        "if code > 999:",
        (f"{OF_DISPATCH}a_worker_that_somebody_else_stopped_is_replaced_and_its_run_goes_on",),
    ),
    Defect(
        "a stopped worker waits for ever",
        WORKER,
        "while (job := self._jobs.get()) is not None and not self.should_stop():",
        "while (job := self._jobs.get()) is not None:",
        (f"{OF_WORKERS}a_worker_that_somebody_else_stopped_takes_nothing_more_and_ends",),
    ),
    Defect(
        "the end of the sweep is not heard",
        WORKER,
        "        self._gone.set()\n        self._jobs.put(None)\n",
        "        self._jobs.put(None)\n",
        (f"{OF_WORKERS}a_worker_takes_one_run_after_the_other_until_the_sweep_is_gone",),
    ),
    Defect(
        "a worker that hangs is waited for",
        WORKERS,
        "code = self._process.wait(TIDY_UP)",
        "code = self._process.wait()",
        (f"{OF_WORKERS}one_that_hangs_is_ended_while_somebody_listens",),
    ),
    Defect(
        "a worker has other threads than the run says",
        "repro/runs/trial.py",
        "        torch.set_num_threads(self.threads)\n",
        "        torch.set_num_threads(2)\n",
        ("tests/runs/executors/test_executors.py::test_the_records_are_those_of_one_process_to_the_bit",),
    ),
)
