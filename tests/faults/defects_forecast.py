"""Defects of forecasts, of the order of runs, and of what is said of a busy machine."""

from faults.defect import Defect

FORECAST, SPEED = "repro/runs/forecast.py", "repro/runs/speed/"
OF_FORECAST, OF_SPEED = "tests/runs/test_forecast.py::test_", "tests/runs/speed/"

DEFECTS = (
    Defect(
        "a row that was never measured is forecast as if it had been",
        FORECAST,
        "measured=rates is not None,",
        "measured=True,",
        (f"{OF_FORECAST}what_was_never_measured_is_guessed_from_operations",),
    ),
    Defect(
        "a forecast leaves translation out",
        FORECAST,
        "return self.train_seconds + self.validation_seconds + self.decode_seconds",
        "return self.train_seconds + self.validation_seconds",
        (f"{OF_FORECAST}an_estimate_has_training_validation_and_translation",),
    ),
    Defect(
        "a rate of another processor counts",
        f"{SPEED}rates.py",
        "return signed_json.checksum({**asdict(machine), ",
        "return signed_json.checksum({**({} if machine else {}), ",
        (f"{OF_SPEED}test_rates.py::test_row_machine_and_text_decide_and_the_schedule_does_not",),
    ),
    Defect(
        "of several measurements the slowest counts",
        f"{SPEED}rates.py",
        "best = min(newest,",
        "best = max(newest,",
        (f"{OF_SPEED}test_rates.py::test_of_the_newest_the_fastest_counts",),
    ),
    Defect(
        "a model that learned nothing says how long translation takes",
        f"{SPEED}rates.py",
        'speaks = content["status"] == "finished" and learned(hyper["steps"], hyper["warmup"])',
        'speaks = content["status"] == "finished"',
        (f"{OF_SPEED}test_rates.py::test_a_run_that_learned_nothing_does_not_say_how_long_it_translates",),
    ),
    Defect(
        "a measurement counts the time that others took",
        f"{SPEED}measure.py",
        "return time.thread_time if trial.threads == 1 and not torch.cuda.is_available() else _waited",
        "return _waited",
        (f"{OF_SPEED}test_measure.py::test_one_thread_is_timed_by_its_processor",),
    ),
    Defect(
        "a search that is timed may end a sentence",
        f"{SPEED}measure.py",
        "module.model.embedding.weight[EOS] = 0.0",
        "module.model.embedding.weight[EOS] *= 4.0",
        (f"{OF_SPEED}test_measure.py::test_a_model_that_learned_nothing_is_searched_as_far_as_one_that_has",),
    ),
    Defect(
        "the longest run of a seed always comes first",
        f"{SPEED}schedule.py",
        "if _sooner(_whole(otherwise, jobs), _whole(seeds, jobs)):",
        "if True:",
        (f"{OF_SPEED}test_schedule.py::test_the_longest_come_first_where_that_ends_sooner",),
    ),
    Defect(
        "rows of the last seed stay longest first",
        f"{SPEED}schedule.py",
        "exchanged = _exchanged(seeds, jobs) if jobs > 1 else seeds",
        "exchanged = seeds",
        (f"{OF_SPEED}test_schedule.py::test_rows_of_the_last_seed_change_places_where_that_ends_sooner",),
    ),
    Defect(
        "an order changes for the last digit of a sum",
        f"{SPEED}schedule.py",
        "return end < other * (1 - 1e-9)",
        "return end < other",
        (f"{OF_SPEED}test_schedule.py::test_rows_of_the_last_seed_change_places_where_that_ends_sooner",),
    ),
    Defect(
        "a worker takes a run before it is free",
        f"{SPEED}schedule.py",
        "heapq.heapreplace(free, free[0] + one)",
        "heapq.heapreplace(free, one)",
        (f"{OF_SPEED}test_schedule.py::test_runs_go_to_whoever_is_free_first",),
    ),
    Defect(
        "a process that was stopped for a while is taken for a busy machine",
        f"{SPEED}busy.py",
        "middle = median(gap.share for gap in self.gaps)",
        "middle = sum(gap.processor for gap in self.gaps) / sum(gap.clock for gap in self.gaps or [1])",
        (f"{OF_SPEED}test_busy.py::test_a_process_that_was_stopped_for_a_while_is_not_told_of",),
    ),
    Defect(
        "a checkpoint counts as time that others took",
        f"{SPEED}busy.py",
        "if self.last and counts and not self.said:",
        "if self.last and not self.said:",
        (f"{OF_SPEED}test_busy.py::test_what_waits_for_the_disk_does_not_count",),
    ),
    Defect(
        "a busy machine is told of again and again",
        f"{SPEED}busy.py",
        "            self.said = True\n",
        "",
        (f"{OF_SPEED}test_busy.py::test_a_busy_machine_is_told_of_once",),
    ),
    Defect(
        "several cards are as fast each as one alone",
        f"{SPEED}elsewhere.py",
        "speed = card.rate(cell.hyper).flops * devices * card.efficiency(devices)",
        "speed = card.rate(cell.hyper).flops * devices",
        (f"{OF_SPEED}test_hardware.py::test_several_cards_keep_less_each",),
    ),
    Defect(
        "an extrapolated rate passes for a published one",
        f"{SPEED}hardware.py",
        "        extrapolated=True,\n    )\n    return Hardware(",
        "    )\n    return Hardware(",
        (f"{OF_SPEED}test_hardware.py::test_every_rate_has_a_source_and_what_is_extrapolated_says_so",),
    ),
    Defect(
        "memory of a large model is that of a small one",
        f"{SPEED}memory.py",
        "if use.tokens * hyper.d_model**2 >= LARGE_PRODUCT:",
        "if False:",
        (f"{OF_SPEED}test_memory.py::test_large_products_keep_what_they_made",),
    ),
    Defect(
        "wide vectors cost no memory",
        f"{SPEED}memory.py",
        "KEPT_WIDE if WIDE in use.vectors else 0",
        "0",
        (f"{OF_SPEED}test_memory.py::test_large_products_keep_what_they_made",),
    ),
    Defect(
        "other test sets are translated in no time",
        "repro/runs/forecast.py",
        "(n_dev + n_test + n_further) * sentence",
        "(n_dev + n_test) * sentence",
        ("tests/runs/test_forecast.py::test_other_test_sets_are_translated_too",),
    ),
    Defect(
        "tokens of one side are forecast",
        FORECAST,
        "{2 * cell.hyper.steps * scale.batch_tokens:>10.1e}",
        "{cell.hyper.steps * scale.batch_tokens:>10.1e}",
        (f"{OF_FORECAST}a_line_of_a_forecast_by_hand",),
    ),
)
