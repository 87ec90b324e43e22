"""Defects that leave everything running and make the numbers other than the paper's, and the tests that notice them.

Those that the sources of reproductions name (future leaks, dropout elsewhere, a schedule off by one, a penalty without
the end symbol) and those that a tool for mutations cannot make: an order, a file, a stop. The rest is such a tool's.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Defect:
    """One token of text replaced by another; it stands exactly once in its file."""

    name: str
    file: str  # from the root of the checkout
    old: str
    new: str
    tests: list[str]  # pytest's ids: each of them must turn red


_KNOWN: tuple[tuple[str, ...], ...] = (
    (
        "dropout after the residual sum",
        "repro/model/layers.py",
        "norm(x + dropout(sub_layer(x)))",
        "norm(dropout(x + sub_layer(x)))",
        "tests/model/test_layers.py::test_dropout_falls_on_each_sub_layers_output_before_it_is_added",
    ),
    (
        "dropout of the scores and not of the weights",
        "repro/model/attention.py",
        "        weights_BHQK = dropout(weights_BHQK)\n    return weights_BHQK @ v_BHKE",
        "        weights_BHQK = dropout(weights_BHQK.log()).softmax(-1)\n    return weights_BHQK @ v_BHKE",
        "tests/model/test_attention.py::test_dropout_falls_on_the_weights_after_the_softmax",
    ),
    (
        "a mask after the softmax",
        "repro/model/attention.py",
        "    if bias is not None:\n        scores_BHQK = scores_BHQK + bias\n    return scores_BHQK.softmax(dim=-1)",
        "    weights = scores_BHQK.softmax(dim=-1)\n    return weights if bias is None else weights * (bias == 0)",
        "tests/model/test_attention.py::test_equals_the_library[True]",
        "tests/model/test_variants.py::test_padding_changes_nothing[False-dot]",
    ),
    (
        "every row drops out like the base",
        "repro/model/transformer.py",
        "        parts: dict[str, Any] = {",
        '        sizes["dropout"] = 0.1\n        parts: dict[str, Any] = {',
        "tests/model/test_transformer.py::test_dropout_is_where_the_paper_prints_it[0.4]",
    ),
    (
        "a search loses which hypothesis took whose place",
        "repro/model/protocol.py",
        "return replace(self, prefix=self.prefix[rows])",
        "return replace(self, prefix=self.prefix[rows.sort().values])",
        "tests/model/test_variants.py::test_a_state_follows_its_hypotheses_in_any_order[Transformer]",
    ),
    (
        "the end symbol is left out of the length penalty",
        "repro/decoding/beam.py",
        "torch.full_like(log_prob_B, length))",
        "torch.full_like(log_prob_B, length - finished))",
        "tests/decoding/test_beam.py::test_the_score_is_log_probability_over_penalty_with_the_end_symbol_counted",
    ),
    (
        "the prediction is made of the smoothed loss",
        "repro/model/loss.py",
        "torch.from_numpy(logits.numpy().argmax(1)) if by_numpy else logits.argmax(1)",
        "(-0.9 * logits.log_softmax(1) - 0.1 * logits.log_softmax(1).mean(1, keepdim=True)).argmax(1)",
        "tests/decoding/test_translate.py::test_it_is_what_a_loop_over_tokens_finds_however_they_are_batched",
        "tests/model/test_loss.py::test_correct_predictions_by_hand[at once]",
    ),
    (
        "perplexity is the mean of batches",
        "repro/decoding/translate.py",
        "        total += nll.item()\n",
        "        total, n = total + nll.item() / batch.n_target, n + 1 - batch.n_target\n",
        "tests/decoding/test_translate.py::test_it_is_what_a_loop_over_tokens_finds_however_they_are_batched",
        "tests/runs/test_run.py::test_perplexity_is_that_of_all_pieces_under_the_averaged_weights[dev]",
    ),
    (
        "the plan depends on the hash seed",
        "repro/data/batching.py",
        'np.random.Philox(key=int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))',
        "np.random.Philox(key=hash(name) % 2**64)",
        "tests/faults/test_surroundings.py::test_the_same_bytes_in_other_surroundings",
    ),
    (
        "the learning rate counts the steps of each optimizer",
        "repro/training/module.py",
        "        return self.trainer.fit_loop.total_batch_idx // self.trainer.accumulate_grad_batches",
        "        return self.trainer.global_step",
        "tests/training/test_lightning.py::test_the_rate_is_that_of_the_update_whatever_an_epoch_is[Two]",
    ),
    (
        "random numbers go on instead of belonging to a step",
        "repro/training/module.py",
        "        torch.manual_seed(random_seed(self.seed, batch.step, share))",
        "        torch.manual_seed(random_seed(self.seed, 0, share))",
        "tests/training/test_module.py::test_dropout_is_a_function_of_seed_step_and_share",
    ),
    (
        "the order begins anew after a stop",
        "repro/data/datamodule.py",
        "return self.batches(self.trainer.global_step)",
        "return self.batches(0)",
        "tests/training/test_loop.py::test_killed_again_and_again_it_writes_the_lines_of_the_unbroken_run",
    ),
    (
        "a line after a stop sums up too few steps",
        "repro/training/callbacks.py",
        "metric.persistent(True)",
        "metric.persistent(False)",
        "tests/training/test_loop.py::test_stopped_again_and_again_it_writes_the_lines_of_the_unbroken_run",
        "tests/training/test_loop.py::test_killed_again_and_again_it_writes_the_lines_of_the_unbroken_run",
    ),
    (
        "a file takes its name before it is on the disk",
        "repro/storage/atomic.py",
        "                file.push()\n            os.replace",
        "            os.replace",
        "tests/storage/test_atomic.py::test_a_crash_at_any_call_leaves_the_old_file_or_the_new",
        "tests/faults/test_crashes.py::test_a_run_after_a_crash_at_any_call",
    ),
    (
        "the folder is not pushed to the disk",
        "repro/storage/atomic.py",
        "            raise\n        _push_folder(path.parent)\n",
        "            raise\n",
        "tests/storage/test_atomic.py::test_a_crash_at_any_call_leaves_the_old_file_or_the_new",
        "tests/training/test_checkpoint.py::test_a_save_that_a_crash_undid_is_made_again",
    ),
    (
        "a torn line is not cut",
        "repro/storage/journal.py",
        "            self._file.cut(tail.offset)\n",
        "            self._file.end = tail.offset\n",
        "tests/faults/test_crashes.py::test_a_journal_cut_off_at_every_byte_of_its_last_three_lines",
    ),
    (
        "a checkpoint's hash is not checked",
        "repro/training/checkpoint.py",
        "        return file.read() == digest.digest()",
        "        return bool(digest)",
        "tests/training/test_checkpoint.py::test_a_thousand_flipped_bytes_are_all_found",
        "tests/training/test_checkpoint.py::test_two_whole_checkpoints_are_always_kept",
    ),
    (
        "an owner that slept writes on",
        "repro/storage/lease.py",
        "        if (self._attempts / _name(self.number + 1)).exists():",
        "        if False:",
        "tests/storage/test_lease.py::test_a_silent_owner_is_replaced_and_may_write_no_more",
    ),
    (
        "of two attempts the line that stands last counts",
        "repro/storage/journal.py",
        '    ordered = sorted(lines, key=lambda line: line["attempt"])',
        "    ordered = list(lines)",
        "tests/storage/test_lease.py::test_a_line_that_comes_too_late_counts_as_early",
    ),
    (
        "the test score is computed on dev",
        "repro/runs/run.py",
        'for name, split in (("dev", prepared.dev), ("test", prepared.test))',
        'for name, split in (("dev", prepared.dev), ("test", prepared.dev))',
        "tests/runs/test_run.py::test_each_split_is_scored_on_its_own_references",
    ),
    (
        "seeds are paired by their place in a row",
        "repro/claims/blocks.py",
        "seeds.index(seed)] = 1.0",
        "sorted(scores[row]).index(seed)] = 1.0",
        "tests/claims/test_blocks.py::test_rows_need_seeds_in_common",
        "tests/claims/test_blocks.py::test_a_drawn_table_comes_out_as_by_a_mixed_model_of_statsmodels",
    ),
    (
        "a row's own variance is ignored",
        "repro/claims/blocks.py",
        "            if variance.value > (1 + ROUNDING) * common.value:",
        "            if variance.value < 0:",
        "tests/claims/test_blocks.py::test_a_row_that_is_noisier_counts_by_its_own_noise_and_spoils_no_other",
    ),
    (
        "Holm's procedure counts only what was run",
        "repro/claims/judge.py",
        "if may_judge(suite.scale, claim)]",
        "if may_judge(suite.scale, claim) and looks[i][1]]",
        "tests/claims/test_judge.py::test_the_levels_of_a_page_come_to_its_error_rate_whatever_of_it_has_been_run",
    ),
    (
        "a later field gives every run another id and every record other bytes",
        "repro/model/config.py",
        "if name not in defaults or value != defaults[name]}",
        "}",
        "tests/model/test_config.py::test_a_field_that_came_later_is_written_only_where_it_says_something",
        "tests/results/test_record.py::test_an_older_row_has_fewer_fields_and_keeps_its_bytes",
    ),
)
DEFECTS = [Defect(name, file, old, new, tests) for name, file, old, new, *tests in _KNOWN]
