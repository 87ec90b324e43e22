"""Defects of resuming, stopping, sharing and badges, and the tests that must notice them."""

from faults.defect import Defect

FIT, MODULE, WITNESS = "repro/training/loop.py", "repro/training/module.py", "repro/training/replay_check.py"
JOURNAL, SAVED = "repro/training/journal_callback.py", "repro/training/checkpoint_callback.py"
DATA = "repro/data/datamodule.py"
RUNS, READS = "tests/training/test_loop.py::", "tests/data/test_datamodule.py::"
OTHERS = "tests/training/test_lightning.py::"  # a Trainer of somebody else's
DIES = tuple(f"{RUNS}test_a_run_that_dies_again_and_again[lives{i}]" for i in range(3))

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a run on a GPU is translated on the CPU, where training left it",
        "repro/decoding/backend.py",
        "model.to(_device())",
        "model",
        ("tests/decoding/test_backend.py::test_our_own_works_where_the_gpu_is",),
    ),
    Defect(
        "the table of positions is a buffer that grows in each process by its own sentences",
        "repro/model/embedding.py",
        "        self._longer = self._longer.to(self.table)\n",
        "        self.table = self._longer = self._longer.to(self.table)\n",
        (
            "tests/model/test_embedding.py::test_a_longer_table_is_no_buffer",
            f"{RUNS}test_two_processes_read_held_out_text_of_which_one_has_nothing[ddp]",
        ),
    ),
    Defect(
        "a process without a sentence makes no forward pass",
        MODULE,
        "        _, nll = self._losses(batch, epsilon=0.0)  # of an empty share as well: other processes may wait in "
        "each layer\n        if batch.n_target:\n",
        "        if batch.n_target:\n            _, nll = self._losses(batch, epsilon=0.0)\n",
        (f"{RUNS}test_two_processes_read_held_out_text_of_which_one_has_nothing[fsdp]",),
    ),
    Defect(
        "cuDNN makes TF32 of float32",
        "repro/training/cpu_tuning.py",
        "    torch.backends.cudnn.allow_tf32 = False",
        "    torch.backends.cudnn.allow_tf32 = True",
        ("tests/training/test_cpu_tuning.py::test_recurrent_layers_and_convolutions_of_a_gpu_are_float32_too",),
    ),
    Defect(
        "a Trainer of somebody else's cuts an update that must be whole",
        MODULE,
        "        refuse_parts(self.model, self.trainer.world_size * self.trainer.accumulate_grad_batches)\n",
        "        refuse_parts(self.model, self.trainer.world_size)\n",
        (f"{OTHERS}test_parts_of_updates_are_refused_where_the_model_needs_whole_ones",),
    ),
    # resuming
    Defect(
        "the order begins anew after a stop",
        FIT,
        "return self.data.batches(self.trainer.global_step)",
        "return self.data.batches(0)",
        DIES[:1],
    ),
    Defect(
        "the order goes on one update too late",
        "repro/data/datasets.py",
        "                step=update.step,",
        "                step=update.step - (self.start > 0),",
        DIES[:1],
    ),
    Defect(
        "random numbers go on instead of belonging to a step",
        MODULE,
        "        torch.manual_seed(random_seed(self.seed, batch.step, share))",
        "        torch.manual_seed(random_seed(self.seed, 0, share))",
        ("tests/training/test_module.py::test_dropout_is_a_function_of_seed_step_and_share",),
    ),
    Defect(
        "the random numbers of a micro-batch are left to chance",
        MODULE,
        "        self.draw_anew(batch)\n        self.batch = batch\n",
        "        self.batch = batch\n",
        (*DIES, f"{RUNS}test_validation_changes_nothing"),
    ),
    Defect(
        "a validation that was cut off is forgotten",
        SAVED,
        'owes = step > 0 and step % self.every.validate == 0 and ("dev", step) not in self.journal_callback.journal',
        "owes = False",
        (f"{RUNS}test_validations_that_were_cut_off_are_made_up_for",),
    ),
    Defect(
        "a validation that is made up for begins where its counters stand",
        SAVED,
        "validation.restarting = False",
        "pass",
        (f"{RUNS}test_asked_to_stop_it_stops_at_a_step_with_a_checkpoint[stops0]",),
    ),
    Defect(
        "no checkpoint before a validation",
        SAVED,
        "due = self.step % self.every.checkpoint == 0 or self.step % self.every.validate == 0",
        "due = self.step % self.every.checkpoint == 0",
        ("tests/faults/test_training.py::test_asked_to_stop_anywhere_it_stops_at_a_step_and_goes_on",),
    ),
    # trainers of somebody else's
    Defect(
        "who reads beside a trainer reads what is left of its epoch",
        DATA,
        "if trainer is None or trainer.state.status != TrainerStatus.RUNNING or trainer.train_dataloader is not self:",
        "if trainer is None:",
        (f"{READS}test_who_reads_beside_a_trainer_and_after_it_reads_whole_epochs",),
    ),
    Defect(
        "a perplexity that no number holds is a score",
        "repro/runs/execution.py",
        '        if not all(math.isfinite(cast("float", of.scores["ppl"])) for of in (dev, test)):\n',
        "        if False:\n",
        ("tests/runs/test_run.py::test_a_perplexity_that_no_number_holds_counts_as_diverged",),
    ),
    Defect(
        "a row's whole float stays one",
        "repro/model/config.py",
        "            object.__setattr__(self, field.name, value)\n",
        "",
        ("tests/model/test_config.py::test_numbers_are_kept_as_their_fields_have_them",),
    ),
    Defect(
        "every epoch has the order of the first",
        DATA,
        "epoch, done = self._where() or (self.epoch, 0)",
        "epoch, done = 0, (self._where() or (0, 0))[1]",
        (
            f"{READS}test_epochs_end_and_each_has_its_own_order",
            f"{READS}test_part_of_an_epoch_is_another_part_the_next_time",
            f"{READS}test_without_a_trainer_each_iteration_is_the_next_epoch",
        ),
    ),
    Defect(
        "an epoch never ends",
        DATA,
        "self.data.batches(epoch * n + start, (epoch + 1) * n)",
        "self.data.batches(epoch * n + start)",
        (f"{READS}test_without_a_trainer_each_iteration_is_the_next_epoch",),
    ),
    Defect(
        "after a stop an epoch begins anew",
        DATA,
        "start, micro = divmod(done, self.data.accumulate)",
        "start, micro = 0, 0",
        (f"{READS}test_a_checkpoint_of_lightnings_is_gone_on_from_exactly[limits0-2-0-Witness]",),
    ),
    Defect(
        "each optimizer's steps count as updates",
        DATA,
        "        here = epochs, loop.epoch_loop.batch_progress.current.ready",
        "        here = divmod(trainer.global_step, self.updates_per_epoch)",
        (f"{READS}test_a_checkpoint_of_lightnings_is_gone_on_from_exactly[limits3-1-0-TwoOptimizers]",),
    ),
    Defect(
        "the learning rate counts the steps of each optimizer",
        MODULE,
        "        return self.trainer.fit_loop.total_batch_idx // self.trainer.accumulate_grad_batches",
        "        return self.trainer.global_step",
        ("tests/training/test_lightning.py::test_the_rate_is_that_of_the_update_whatever_an_epoch_is[Two]",),
    ),
    Defect(
        "trainers get a loader into which they put a sampler",
        DATA,
        "        return DevBatches(*sides, budget=self.budget // self.accumulate, rank=rank, world=world)",
        "        batches = DevBatches(*sides, budget=self.budget // self.accumulate, rank=rank, world=world)\n"
        "        return loader(batches, workers=0)",
        (f"{READS}test_two_processes_with_lightnings_own_settings_read_each_sentence_once",),
    ),
    Defect(
        "a checkpoint of another seed is gone on from",
        DATA,
        '("data_hash", "seed", "budget", "accumulate")',
        '("data_hash", "budget", "accumulate")',
        (f"{READS}test_another_order_is_refused_by_name[change0-seed 1 there, 2 here]",),
    ),
    # lines of the journal
    Defect(
        "a line after a stop sums up too few steps",
        MODULE,
        "        self.train_loss.persistent(True)\n        self.train_nll.persistent(True)\n",
        "",
        (
            f"{RUNS}test_stopped_again_and_again_it_writes_the_lines_of_the_unbroken_run[5-1]",
            f"{RUNS}test_killed_again_and_again_it_writes_the_lines_of_the_unbroken_run[5]",
            f"{RUNS}test_asked_to_stop_it_stops_at_a_step_with_a_checkpoint[stops0]",
            "tests/faults/test_training.py::test_asked_to_stop_anywhere_it_stops_at_a_step_and_goes_on",
        ),
    ),
    Defect(
        "a line after a stop counts too few tokens",
        JOURNAL,
        'self.cost, self.window = TrainingCost(**state["cost"]), TrainingCost(**state["window"])',
        'self.cost, self.window = TrainingCost(**state["cost"]), TrainingCost()',
        (f"{RUNS}test_stopped_again_and_again_it_writes_the_lines_of_the_unbroken_run[5-1]",),
    ),
    Defect(
        "after a stop each of two processes begins with the sums of both",
        JOURNAL,
        "            pl_module.train_loss.reset()\n            pl_module.train_nll.reset()\n        self.step,",
        "        self.step,",
        (f"{RUNS}test_two_processes_that_stop_write_the_lines_of_the_unbroken_run",),
    ),
    Defect(
        "a checkpoint of two processes has the sums of the first",
        JOURNAL,
        '                total = trainer.strategy.reduce(getattr(metric, name), reduce_op="sum")',
        "                total = getattr(metric, name)",
        (f"{RUNS}test_two_processes_that_stop_write_the_lines_of_the_unbroken_run",),
    ),
    Defect(
        "micro-batches are counted as those of another number of processes",
        SAVED,
        '            counted |= {"ready": done, "started": done, "processed": done, "completed": done - 1}',
        "            pass",
        (f"{RUNS}test_two_processes_that_stop_write_the_lines_of_the_unbroken_run",),
    ),
    Defect(
        "training goes on from a checkpoint without the sums of a line",
        "repro/training/checkpoint.py",
        "formats: Collection[str] = (FORMAT,)",
        "formats: Collection[str] = SAME_WEIGHTS",
        ("tests/training/test_checkpoint.py::test_training_does_not_go_on_from_an_older_format[2]",),
    ),
    # numbers that are none
    Defect(
        "no gradient is looked at",
        MODULE,
        "        norm = _norm(gradients)",
        "        norm = torch.zeros(())",
        (
            "tests/faults/test_training.py::test_what_is_no_number_stops_the_run_before_it_is_kept"
            "[gradient-6-The norm of the gradient is inf at step 6; no update was made]",
        ),
    ),
    Defect(
        "not every gradient is looked at",
        MODULE,
        "        norm = _norm(gradients)",
        "        norm = _norm(gradients[:-1])",
        (
            "tests/faults/test_training.py::test_what_is_no_number_stops_the_run_before_it_is_kept"
            "[gradient-6-The norm of the gradient is inf at step 6; no update was made]",
        ),
    ),
    Defect(
        "a loss that is no number goes unnoticed until the gradient is there",
        MODULE,
        'if loss.device.type == "cpu" and self.trainer.world_size == 1 and not math.isfinite(loss.item()):',
        "if False:",
        ("tests/training/test_module.py::test_a_loss_that_is_no_number_stops_before_the_update[nan]",),
    ),
    # signals
    Defect(
        "a second signal waits like the first",
        "repro/runs/signals.py",
        "            os._exit(128 + number)",
        "            return",
        ("tests/faults/test_training.py::test_a_second_signal_ends_it_at_once_and_the_last_checkpoint_is_whole",),
    ),
    Defect(
        "a signal during validation waits for its end",
        SAVED,
        "        if self._stop_requested(trainer):\n            raise StopRequested\n\n    def _stop_requested",
        "        self._stop_requested(trainer)\n\n    def _stop_requested",
        ("tests/faults/test_training.py::test_asked_to_stop_anywhere_it_stops_at_a_step_and_goes_on",),
    ),
    # many at once
    Defect(
        "an owner that slept writes on",
        "repro/storage/lease.py",
        "        if (self._attempts / _name(self.number + 1)).exists():",
        "        if False:",
        ("tests/storage/test_lease.py::test_who_is_not_heard_of_is_replaced_and_may_write_no_more",),
    ),
    Defect(
        "the journal is not asked who owns it",
        "repro/storage/journal.py",
        "        self._check()\n        self._file.append(",
        "        self._file.append(",
        ("tests/storage/test_lease.py::test_who_is_not_heard_of_is_replaced_and_may_write_no_more",),
    ),
    Defect(
        "of two attempts the line that stands last counts",
        "repro/storage/journal.py",
        '    ordered = sorted(lines, key=lambda line: line["attempt"])',
        "    ordered = list(lines)",
        ("tests/storage/test_lease.py::test_a_line_that_comes_too_late_counts_as_early",),
    ),
    Defect(
        "nobody hears a heartbeat",
        "repro/storage/lease.py",
        "        if _heard(attempt) != heard:",
        "        if False:",
        ("tests/storage/test_lease.py::test_a_second_one_hears_the_first_and_says_who_it_is",),
    ),
    Defect(
        "attempts without progress are not counted",
        "repro/storage/lease.py",
        "            _count([self._attempts / _name(number) for number in before], step)\n",
        "",
        ("tests/storage/test_lease.py::test_killed_three_times_without_progress_it_says_so_once[steps2-True]",),
    ),
    # changed between two launches
    Defect(
        "a changed command begins anew in silence",
        "repro/runs/changed.py",
        "        if saved and not (folder / RECORD).exists():",
        "        if False:",
        ("tests/runs/test_changed.py::test_each_field_that_differs_is_named_and_no_other[seed]",),
    ),
    Defect(
        "finished runs are refused like unfinished ones",
        "repro/runs/changed.py",
        "        if saved and not (folder / RECORD).exists():",
        "        if saved:",
        ("tests/runs/test_changed.py::test_what_is_finished_or_has_no_checkpoint_or_another_name_is_no_obstacle",),
    ),
    Defect(
        "own text that was edited begins anew in silence",
        "repro/runs/changed.py",
        'if found["tags"].get("scale") != tags["scale"] and all(',
        "if False and all(",
        ("tests/runs/test_changed.py::test_own_text_that_was_another_is_told_and_refuses_nothing",),
    ),
    Defect(
        "the tokenizer does not decide",
        "repro/runs/recipe.py",
        '            "tokenizer": self.prepared.tokenizer.sha256,\n            "data"',
        '            "data"',
        ("tests/runs/test_changed.py::test_what_decides_is_all_there",),
    ),
    # the badge
    Defect(
        "a badge whatever was read",
        "repro/runs/determinism.py",
        "    if report.followed != shares or report.order != plan:",
        "    if False:",
        ("tests/runs/test_determinism.py::test_another_order_has_no_badge[report0]",),
    ),
    Defect(
        "a badge under changed conditions",
        "repro/runs/determinism.py",
        "    against = list(changes(report.conditions))",
        "    against: list[str] = []",
        (
            "tests/runs/test_determinism.py::test_what_was_not_looked_at_or_failed_leaves_the_order_alone"
            "[report4-now4-From step 3 on: threads 1, then 2]",
        ),
    ),
    Defect(
        "a micro-batch is compared with itself",
        WITNESS,
        "        self.unequal += _bits(pl_module) != first",
        "        self.unequal += first != first",
        (f"{RUNS}test_a_step_that_is_not_the_same_twice_is_seen",),
    ),
    Defect(
        "what was seen before a stop is forgotten",
        WITNESS,
        '        self.words, self.followed = np.array(state["words"], np.int64), state["followed"]\n',
        "",
        (f"{RUNS}test_what_was_seen_is_over_all_attempts",),
    ),
    Defect(
        "an older record gets a badge",
        "repro/results/record.py",
        "        older: dict[str, Any] = dict.fromkeys(OPTIONAL)",
        '        older: dict[str, Any] = dict.fromkeys(OPTIONAL, {"badge": "L1"})',
        ("tests/results/test_record.py::test_an_older_record_has_no_badge_and_keeps_its_bytes",),
    ),
    Defect(
        "under --devices the launcher's own exit code is given",
        "repro/runs/launch.py",
        "        return code\n",
        "        return 1\n",
        ("tests/runs/test_launch.py::test_the_first_to_fail_decides[exit code]",),
    ),
    Defect(
        "the gradient of the softmax matrix is that of the last token",
        "repro/model/loss.py",
        "d_weight = made.to(exact) if d_weight is None else d_weight.add_(made)",
        "d_weight = made.to(exact)",
        ("tests/model/test_loss.py::test_bfloat16_products_stay_close",),
    ),
    Defect(
        "validation counts as time of training",
        JOURNAL,
        "        self.clock += time.monotonic() - self.paused\n",
        "",
        ("tests/training/test_cost.py::test_seconds_are_those_of_steps_and_places_those_of_micro_batches",),
    ),
    Defect(
        "a row without warm-up warms up",
        MODULE,
        "self.hyper.lr_factor, rises=self.hyper.warms_up\n",
        "self.hyper.lr_factor\n",
        ("tests/training/test_module.py::test_the_rate_of_an_optimizer_step",),
    ),
    Defect(
        "no row drops weights of attention",
        "repro/model/transformer.py",
        '"dropout", "attention_dropout")',
        '"dropout")',
        ("tests/model/test_transformer.py::test_dropout_of_weights_is_of_every_attention_and_has_a_rate_of_its_own",),
    ),
    Defect(
        "a limit that ends where a checkpoint was written ends its epoch",
        DATA,
        "batch == (of or trainer.num_training_batches)",
        "batch == trainer.num_training_batches",
        (f"{READS}test_a_limit_that_ends_where_the_checkpoint_was_written_does_not_end_its_epoch[4]",),
    ),
    Defect(
        "an update is cut into more parts than the trainer accumulates",
        MODULE,
        "if batch.micro != (expected := self.trainer.fit_loop.total_batch_idx % n):",
        "if batch.micro < (expected := self.trainer.fit_loop.total_batch_idx % n):",
        (f"{OTHERS}test_a_stream_cut_otherwise_than_the_trainer_accumulates_is_refused[2-1-1 of 1, ]",),
    ),
    Defect(
        "a run within autocast is bfloat16 by another name",
        "repro/runs/trial.py",
        "if torch.is_autocast_enabled(kind)]",
        "if not kind]",
        ("tests/runs/test_changed.py::test_a_program_that_works_in_autocast_makes_no_run",),
    ),
)
