"""Defects of accuracy and of what records, tables and equal code make of it, and the tests that must notice them."""

from faults.defect import Defect

LOSS, TRANSLATE, TRIAL = "repro/model/loss.py", "repro/decoding/translate.py", "repro/runs/trial.py"
TASK, RECORD, FRAME = "repro/results/task.py", "repro/results/record.py", "repro/results/frame.py"
BENCH = "benchmarks/equal_code.py"
WAYS = ("at once", "in_chunks", "by_the_gpus_way")
COUNTED = "((best.unsqueeze(1) == gold) & (gold != PAD)).sum()"
BEST = "torch.from_numpy(logits.numpy().argmax(1)) if by_numpy else logits.argmax(1)"
BY_HAND = tuple(f"tests/model/test_loss.py::test_correct_predictions_by_hand[{way}]" for way in WAYS)
SHARE = "tests/decoding/test_accuracy.py::test_it_is_the_share_of_tokens_that_a_loop_finds"
PADDED = "tests/decoding/test_accuracy.py::test_columns_of_padding_change_nothing"
BATCHED = tuple(
    f"tests/decoding/test_accuracy.py::test_neither_batches_nor_padding_nor_packing_change_it[{size}-{packed}]"
    for size in (1, 7)
    for packed in (False, True)
)
OF_RUN = tuple(
    f"tests/runs/test_run.py::test_perplexity_is_that_of_all_pieces_under_the_averaged_weights[{split}]"
    for split in ("dev", "test")
)
OF_RECORD, OF_TABLE = "tests/results/test_record.py::test_", "tests/pages/test_table3.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "padding that is predicted is correct",
        LOSS,
        COUNTED,
        "(best.unsqueeze(1) == gold).sum()",
        (BY_HAND[0], BY_HAND[2]),  # in chunks there is no padding
    ),
    Defect(
        "padding counts as right",
        LOSS,
        COUNTED,
        "((best.unsqueeze(1) == gold) | (gold == PAD)).sum()",
        (SHARE, PADDED, BY_HAND[0]),
    ),
    Defect(
        "any of those that are as probable is correct",
        LOSS,
        COUNTED,
        "((logits.amax(1, keepdim=True) == logits.gather(1, gold)) & (gold != PAD)).sum()",
        BY_HAND,
    ),
    Defect(
        "the least probable token is the prediction",
        LOSS,
        BEST,
        "logits.argmin(1)",
        (SHARE, *BY_HAND),
    ),
    Defect(
        "the prediction is made of probabilities after rounding",
        LOSS,
        BEST,
        "logits.softmax(1).argmax(1)",
        BY_HAND,
    ),
    Defect(
        "the prediction is made of the smoothed loss",
        LOSS,
        BEST,
        "(-0.9 * logits.log_softmax(1) - 0.1 * logits.log_softmax(1).mean(1, keepdim=True)).argmax(1)",
        (SHARE, *BY_HAND),
    ),
    Defect(
        "tokens are compared with what was read",
        TRANSLATE,
        "        total += nll.item()\n",
        "        correct = nll_and_correct(hidden.flatten(0, -2), model.embedding.weight, decoder_in.flatten())[1]\n"
        "        total += nll.item()\n",
        (SHARE, *BATCHED),
    ),
    Defect(
        "accuracy is a share of slots",
        TRANSLATE,
        "        n_correct += int(correct.item())\n        n += batch.n_target\n    if not n:",
        "        n_correct += int(correct.item()) * batch.n_target / target.numel()\n        n += batch.n_target\n"
        "    if not n:",
        (SHARE, PADDED, *BATCHED[2:]),
    ),
    Defect(
        "accuracy is that of the last batch",
        TRANSLATE,
        "n_correct += int(correct.item())",
        "n_correct = int(correct.item())",
        (*BATCHED, *OF_RUN[:1]),
    ),
    Defect(
        "the accuracy of a run is that of its smoothed loss",
        TRIAL,
        '"accuracy": accuracy, **own}',
        '"accuracy": 1 - nll, **own}',
        OF_RUN,
    ),
    Defect(
        "accuracy may be in one split alone",
        TASK,
        'scores["dev"].keys() == scores["test"].keys() and dev == test',
        "dev == test",
        (f"{OF_RECORD}accuracy_may_have_no_value_but_in_both_splits_alike",),
    ),
    Defect(
        "accuracy may have no value in one split alone",
        TASK,
        'scores["dev"].keys() == scores["test"].keys() and dev == test',
        'scores["dev"].keys() == scores["test"].keys()',
        (f"{OF_RECORD}accuracy_may_have_no_value_but_in_both_splits_alike",),
    ),
    Defect(
        "every score of tokens may be absent",
        TASK,
        'LATER_SCORES = frozenset({"accuracy"})',
        "LATER_SCORES = frozenset(OF_TOKENS)",
        (f"{OF_RECORD}no_other_score_of_tokens_may_be_absent_or_without_a_value",),
    ),
    Defect(
        "a record without accuracy is refused",
        RECORD,
        'f"record.scores.{split}", task.LATER_SCORES)',
        'f"record.scores.{split}")',
        (f"{OF_RECORD}accuracy_is_kept_and_older_records_have_none",),
    ),
    Defect(
        "sheets of older records get a column that is empty",
        FRAME,
        "if name not in absent]",
        "]",
        (f"{OF_TABLE}accuracy_is_a_column_of_the_sheet_where_records_have_it_and_of_no_page",),
    ),
    Defect(
        "a mean accuracy is over those seeds that have one",
        FRAME,
        " if None not in found else [])",
        ")",
        (f"{OF_TABLE}a_mean_accuracy_is_over_all_seeds_of_a_row_or_there_is_none",),
    ),
    Defect(
        "codes are equal that have no score in common",
        BENCH,
        "if name in others[split] or name not in LATER_SCORES}",
        "if name in others[split]}",
        ("tests/results/test_equal_code.py::test_a_score_that_came_later_is_compared_where_both_have_it",),
    ),
)
