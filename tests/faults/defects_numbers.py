"""Defects that leave everything running and make the numbers other than the paper's, and the tests that notice them."""

from faults.defect import Defect

LAYERS, TRANSFORMER, RAGGED = "repro/model/layers.py", "repro/model/transformer.py", "repro/model/ragged.py"
OF_LAYERS, OF_TRANSFORMER = "tests/model/test_layers.py::test_", "tests/model/test_transformer.py::test_"
SUB_LAYERS = (f"{OF_LAYERS}dropout_falls_on_each_sub_layers_output_before_it_is_added",)
SUMS = tuple(
    f"{OF_TRANSFORMER}dropout_falls_on_the_sum_of_embedding_and_position_of_both_stacks[{in_a_row}]"
    for in_a_row in (False, True)
)

TABLE2, FIDELITY, PUBLISHED = "experiments/table2.py", "repro/results/departures.py", "repro/paper.py"
ROWS, RULES = "tests/runs/test_table.py::test_", "tests/results/test_departures.py::test_"
AS_SECTION_6_1 = (f"{ROWS}table_2_is_averaged_dropped_out_and_scored_as_section_6_1_says",)
SEARCH, OF_SEARCH = "repro/results/search.py", "tests/results/test_search.py::test_the_search_is_the_papers"
ENGINES = "tests/decoding/test_backend.py::test_"
PRINTED = ("tests/test_paper.py::test_each_number_is_the_printed_one",)

TABLE3 = "tests/pages/test_table3.py::test_"
OF_ENDPOINTS = (
    "tests/claims/test_judge.py::test_an_endpoint_reads_the_score_of_its_name_and_turns_it_so_that_more_is_better"
)
RUN, TRIAL = "repro/runs/execution.py", "repro/runs/trial.py"
JOURNAL, TRANSLATE = "repro/training/journal_callback.py", "repro/decoding/translate.py"
OF_RUN = "tests/runs/test_run.py::test_"
SCORED = (f"{OF_RUN}each_split_is_scored_on_its_own_references",)
TRAINED = (f"{OF_RUN}losses_and_rates_are_those_of_the_training_written_by_hand",)
COUNTED = (f"{OF_RUN}what_was_read_is_counted_by_sides",)
PERPLEXITY = tuple(
    f"{OF_RUN}perplexity_is_that_of_all_pieces_under_the_averaged_weights[{split}]" for split in ("dev", "test")
)

DEFECTS: tuple[Defect, ...] = (
    # the model
    Defect(
        "dropout after the residual sum",
        LAYERS,
        "norm(x + dropout(sub_layer(x)))",
        "norm(dropout(x + sub_layer(x)))",
        SUB_LAYERS,
    ),
    Defect(
        "dropout after the norm",
        LAYERS,
        "norm(x + dropout(sub_layer(x)))",
        "dropout(norm(x + sub_layer(x)))",
        SUB_LAYERS,
    ),
    Defect(
        "dropout of what a sub-layer reads",
        LAYERS,
        "norm(x + dropout(sub_layer(x)))",
        "norm(x + sub_layer(dropout(x)))",
        SUB_LAYERS,
    ),
    Defect(
        "the decoder's attention to the source goes without dropout",
        LAYERS,
        "x = self.around(x, lambda x: self.cross_attention(x, memory, source_bias), self.norms[1], self.dropout)",
        "x = self.around(x, lambda x: self.cross_attention(x, memory, source_bias), self.norms[1], lambda x: x)",
        SUB_LAYERS,
    ),
    Defect(
        "dropout on the embedding alone",
        TRANSFORMER,
        "self.dropout(self.embedding(read.ids) + read.encodings(positions))",
        "self.dropout(self.embedding(read.ids)) + read.encodings(positions)",
        SUMS,
    ),
    Defect(
        "sentences in a row have the positions of one long sentence",
        RAGGED,
        "positions(0, self.longest)[self.position]",
        "positions(0, self.longest)[self.position * 0]",
        SUMS[1:],
    ),
    Defect(
        "dropout of the scores and not of the weights",
        "repro/model/attention.py",
        "        weights_BHQK = dropout(weights_BHQK)\n    return weights_BHQK @ v_BHKE",
        "        weights_BHQK = dropout(weights_BHQK.log()).softmax(-1)\n    return weights_BHQK @ v_BHKE",
        ("tests/model/test_attention.py::test_dropout_falls_on_the_weights_after_the_softmax",),
    ),
    Defect(
        "a way of mixing that is handed over is left aside",
        "repro/model/attention.py",
        "self.mixing = mix(n_heads",
        "self.mixing = ScaledDotProduct(n_heads",
        tuple(
            f"tests/model/test_attention.py::test_another_way_for_queries_to_meet_keys_is_used[{kind}]"
            for kind in ("MultiHeadAttention", "SelfAttention")
        ),
    ),
    Defect(
        "a later field gives every run another id and every record other bytes",
        "repro/model/config.py",
        "if name not in defaults or value != defaults[name]}",
        "}",
        (
            "tests/model/test_config.py::test_a_field_that_came_later_is_written_only_where_it_says_something",
            "tests/results/test_record.py::test_an_older_record_has_no_badge_and_keeps_its_bytes",
        ),
    ),
    # a row's own system
    Defect(
        "the system is no part of a run's id",
        "repro/runs/recipe.py",
        '{"system": system_text(self.system)} if self.system',
        '{"system": ""} if self.system',
        ("tests/runs/test_system.py::test_two_systems_of_one_file_are_two_runs",),
    ),
    Defect(
        "a search loses which hypothesis took whose place",
        "repro/model/protocol.py",
        "return replace(self, prefix=self.prefix[rows])",
        "return replace(self, prefix=self.prefix[rows.sort().values])",
        ("tests/model/test_protocol.py::test_a_search_sees_what_training_saw[Transformer]",),
    ),
    Defect(
        "what the system's file imports decides nothing",
        "repro/results/provenance.py",
        "is_beside = self.follows and (is_module",
        "is_beside = False and (is_module",
        ("tests/runs/test_system.py::test_the_fingerprint_covers_what_the_system_imports",),
    ),
    # Table 2
    Defect(
        "the base of Table 2 is not averaged",
        TABLE2,
        "return replace(base, average=5)",
        "return replace(base, average=1)",
        AS_SECTION_6_1,
    ),
    Defect(
        "of the big model of Table 2 five checkpoints are averaged",
        TABLE2,
        "return replace(big(base), average=20)",
        "return replace(big(base), average=5)",
        AS_SECTION_6_1,
    ),
    Defect(
        "English-French drops out like English-German",
        TABLE2,
        "return replace(big_averaged(base), dropout=base.dropout)",
        "return big_averaged(base)",
        AS_SECTION_6_1,
    ),
    Defect(
        "a row of Table 2 beside another's number",
        TABLE2,
        'base_averaged, printed(BASE, "en-fr"), Translation("en-fr")',
        'base_averaged, printed(BIG, "en-fr"), Translation("en-fr")',
        AS_SECTION_6_1,
    ),
    Defect(
        "a row of Table 2 in another language",
        TABLE2,
        'big_french, printed(BIG, "en-fr"), Translation("en-fr")',
        'big_french, printed(BIG, "en-fr"), Translation("en-de")',
        AS_SECTION_6_1,
    ),
    Defect(
        "no rule looks at the dropout of English-French",
        FIDELITY,
        'kept=lambda record: record.hyper["dropout"] == BIG_DROPOUT.get(record.pair),',
        'kept=lambda record: record.hyper["dropout"] in BIG_DROPOUT.values(),',
        (f"{RULES}base_and_big_drop_out_as_the_paper_says[big en-fr-table2-en-fr-0.3-dropout of the big model]",),
    ),
    Defect(
        "the base of Table 2 may drop out as it likes",
        FIDELITY,
        'record.table == BASE or (record.table.startswith("table2") and record.row.startswith("base"))',
        "record.table == BASE",
        (f"{RULES}base_and_big_drop_out_as_the_paper_says[base en-fr-table2-en-fr-0.3-dropout of the base model]",),
    ),
    Defect(
        "a big model of any size departs from nothing",
        FIDELITY,
        "getattr(PAPER_BIG, name) for name in SIZES",
        "getattr(PAPER_BIG, name) for name in ()",
        (f"{RULES}the_models_of_table_2_and_big_are_held_against_the_whole_recipe[big-table3_big-hyper2]",),
    ),
    Defect(
        "more updates than the paper's are the paper's",
        FIDELITY,
        'record.hyper["steps"] == PAPER_BASE.steps',
        'record.hyper["steps"] >= PAPER_BASE.steps',
        (f"{RULES}what_departs_is_named[updates of the base model-other12-200,000]",),
    ),
    Defect(
        "two systems of Table 2 have changed numbers",
        PUBLISHED,
        'System(name="ByteNet", kind="single", bleu={"en-de": 23.75})',
        'System(name="ByteNet", kind="single", bleu={"en-de": 25.16})',
        PRINTED,
    ),
    Defect(
        "a parser of Table 4 has another's number",
        PUBLISHED,
        'Parser(name="McClosky et al. (2006)", training="semi-supervised", f1=92.1)',
        'Parser(name="McClosky et al. (2006)", training="semi-supervised", f1=91.2)',
        PRINTED,
    ),
    # the search
    Defect(
        "bfloat16 is laid out on a processor that cannot",
        "repro/model/prepacked.py",
        "(dtype == torch.bfloat16 and has_bfloat16())",
        "dtype == torch.bfloat16",
        (f"{ENGINES}a_processor_without_bfloat16_products_of_its_own_translates_all_the_same",),
    ),
    Defect(
        "an LSTM in bfloat16 goes to a library that has none",
        "repro/model/bfloat16.py",
        "    _ATEN.mkldnn_rnn_layer.default, _ATEN.mkldnn_rnn_layer_backward.default,",
        "    #",
        ("tests/model/test_bfloat16.py::test_an_lstm_gives_what_float64_does",),
    ),
    Defect(
        "training in bfloat16 is left to PyTorch's slow products",
        "repro/training/loop.py",
        'wanted=precision == "bf16"',
        "wanted=False",
        ("tests/training/test_loop.py::test_where_the_processor_has_no_bfloat16_products_go_through_float32",),
    ),
    # a run
    Defect(
        "the test score is computed on dev",
        RUN,
        'self._evaluate(opened, "test", self.prepared.test)',
        'self._evaluate(opened, "test", self.prepared.dev)',
        SCORED,
    ),
    Defect(
        "the dev score is computed on test",
        RUN,
        'self._evaluate(opened, "dev", self.prepared.dev)',
        'self._evaluate(opened, "dev", self.prepared.test)',
        SCORED,
    ),
    Defect(
        "references are scored against translations",
        "repro/runs/task.py",
        "plain = sacrebleu_score(outputs, references,",
        "plain = sacrebleu_score(references, outputs,",
        SCORED,
    ),
    Defect(
        "perplexity in bits",
        TRIAL,
        "ppl = torch.tensor(nll, dtype=torch.float64).exp().item()",
        "ppl = torch.tensor(nll, dtype=torch.float64).exp2().item()",
        SCORED,
    ),
    Defect(
        "source and target are swapped in training",
        TRIAL,
        "(self.prepared.train.source, self.prepared.train.target),",
        "(self.prepared.train.target, self.prepared.train.source),",
        COUNTED + TRAINED,
    ),
    Defect(
        "the sides of what was read are swapped",
        JOURNAL,
        "source_tokens=batch.n_source,\n            target_tokens=batch.n_target,",
        "source_tokens=batch.n_target,\n            target_tokens=batch.n_source,",
        COUNTED,
    ),
    Defect(
        "perplexity is the mean of batches",
        TRANSLATE,
        "        total += nll.item()\n",
        "        total, n = total + nll.item() / batch.n_target, n + 1 - batch.n_target\n",
        (f"{ENGINES}the_perplexity_of_batches_is_that_of_their_pieces", *PERPLEXITY[:1]),
    ),
    Defect(
        "a run averages the perplexity of batches",
        TRIAL,
        "        nll, accuracy = model.score_tokens(some())\n",
        "        each = [model.score_tokens([batch]) for batch in some()]\n"
        "        nll, accuracy = sum(one.nll for one in each) / len(each), model.score_tokens(some()).accuracy\n",
        PERPLEXITY[:1],
    ),
    Defect(
        "a run decodes with its last checkpoint",
        TRIAL,
        "averaging.averaged(checkpoints, run, self.hyper.averaged_steps)",
        "averaging.averaged(checkpoints, run, self.hyper.averaged_steps[-1:])",
        PERPLEXITY,
    ),
    Defect(
        "every seed begins with the weights of the first",
        TRIAL,
        "self.prepared.tokenizer.size, self.seed, self.system)",
        "self.prepared.tokenizer.size, 1, self.system)",
        TRAINED,
    ),
    Defect(
        "every seed reads in the order of the first",
        TRIAL,
        "            seed=self.seed,\n            accumulate=",
        "            seed=1,\n            accumulate=",
        TRAINED,
    ),
    Defect(
        "a run translates greedily",
        TRIAL,
        "model.translate(split.source, self.task.search, between=between)",
        "model.translate(split.source, type(self.task.search)(1), between=between)",
        SCORED,
    ),
    # tables and claims
    Defect(
        "Table 2 shows the scores of dev",
        "repro/pages/table2.py",
        'spreads(frame, "test/bleu", 1)',
        'spreads(frame, "dev/bleu", 1)',
        ("tests/pages/test_table2.py::test_each_number_stands_under_its_heading",),
    ),
    Defect(
        "a table shows the test scores of one scorer under the other",
        "repro/pages/columns.py",
        'Column(TEST, "sacreBLEU", spreads(frame, "test/bleu", 1)),',
        'Column(TEST, "sacreBLEU", spreads(frame, "test/bleu_published", 1)),',
        (f"{TABLE3}each_number_stands_under_its_heading",),
    ),
    Defect(
        "a table shows the test scores for those of dev",
        "repro/pages/columns.py",
        'Column(group, ours, spreads(frame, f"dev/{name}", decimals)),',
        'Column(group, ours, spreads(frame, f"test/{name}", decimals)),',
        (f"{TABLE3}each_number_stands_under_its_heading",),
    ),
    Defect(
        "the sheet has the test scores twice",
        "repro/results/frame.py",
        'number(run["scores"][split], name)',
        'number(run["scores"]["test"], name)',
        (f"{TABLE3}each_number_of_the_sheet_stands_under_its_name",),
    ),
    Defect(
        "claims about the test set are judged on dev",
        "repro/claims/claim.py",
        "value = record.score(self.split, self.score)",
        'value = record.score("dev", self.score)',
        (OF_ENDPOINTS,),
    ),
    Defect(
        "five checkpoints of the big model are enough",
        FIDELITY,
        'AVERAGED = {"base": 5, "big": 20}',
        'AVERAGED = {"base": 5, "big": 5}',
        (
            f"{RULES}checkpoints_are_averaged_as_section_6_1_says[big en-de-table2-20-True]",
            f"{RULES}checkpoints_are_averaged_as_section_6_1_says[big en-fr-table2-5-False]",
        ),
    ),
    Defect(
        "Holm's procedure does not step down",
        "repro/claims/statistics.py",
        "p_values[i] <= alpha / (m - place)",
        "p_values[i] <= alpha / m",
        ("tests/claims/test_statistics.py::test_holm_by_hand",),
    ),
    # training and text
    Defect(
        "every row is smoothed like the base",
        "repro/training/module.py",
        "loss, nll = self._losses(batch, self.hyper.label_smoothing)\n        # Each",
        "loss, nll = self._losses(batch, 0.1)\n        # Each",
        ("tests/training/test_module.py::test_the_loss_is_smoothed_as_the_row_says_and_dev_never[0.3]",),
    ),
    Defect(
        "every row drops out like the base",
        TRANSFORMER,
        "        parts: dict[str, Any] = {",
        '        sizes["dropout"] = 0.1\n        parts: dict[str, Any] = {',
        (f"{OF_TRANSFORMER}dropout_is_where_the_paper_prints_it[0.4]",),
    ),
    Defect(
        "choices are made on the test set",
        "repro/data/corpora.py",
        '"en-fr": "wmt_enfr"},\n        dev=("newstest2013",),\n        test=NEWSTEST_2014,',
        '"en-fr": "wmt_enfr"},\n        dev=NEWSTEST_2014,\n        test=("newstest2013",),',
        ("tests/data/test_corpora.py::test_choices_are_made_on_dev_and_scores_are_of_test[wmt14-dev0-test0]",),
    ),
    Defect(
        "the paper's scale reads a tenth",
        "repro/runs/scales.py",
        'base=BASE,\n        corpus="wmt14",\n        batch_tokens=25_000,',
        'base=BASE,\n        corpus="wmt14",\n        batch_tokens=2_500,',
        ("tests/runs/test_scales.py::test_the_paper_scale_is_the_papers",),
    ),
    # scoring
    Defect(
        "a beam of five",
        SEARCH,
        "beam: int = 4",
        "beam: int = 5",
        (OF_SEARCH,),
    ),
    Defect(
        "alpha is not the paper's",
        SEARCH,
        "alpha: float = 0.6",
        "alpha: float = 0.0",
        (OF_SEARCH,),
    ),
    Defect(
        "translations end sooner than the paper's",
        SEARCH,
        "extra: int = 50",
        "extra: int = 5",
        (OF_SEARCH,),
    ),
    Defect(
        "dropout stays on while perplexity is measured",
        TRANSLATE,
        "    model.eval()\n    device = model.embedding.weight.device\n    total",
        "    device = model.embedding.weight.device\n    total",
        (f"{ENGINES}nothing_is_dropped_out_of_a_model_that_comes_from_training",),
    ),
    Defect(
        "dropout stays on while translating",
        TRANSLATE,
        "    model.eval()\n    device = model.embedding.weight.device\n    step",
        "    device = model.embedding.weight.device\n    step",
        (f"{ENGINES}nothing_is_dropped_out_of_a_model_that_comes_from_training",),
    ),
)
