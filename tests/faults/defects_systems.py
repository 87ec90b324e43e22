"""Defects of the systems before the Transformer, which go on training and translating; and the tests that notice."""

from faults.defect import Defect

RIVALS, OF_RIVALS, OF_ALL = "repro/model/rivals/", "tests/model/rivals/", "tests/model/test_systems.py::test_"
RECURRENT, ALIGNMENT, STATE = f"{RIVALS}recurrent.py", f"{RIVALS}attention_rnn.py", f"{RIVALS}search_state.py"
OF_RECURRENT, OF_ALIGNMENT = f"{OF_RIVALS}test_recurrent.py::test_", f"{OF_RIVALS}test_attention_rnn.py::test_"
CONVS2S, OF_CONVS2S = f"{RIVALS}convs2s.py", f"{OF_RIVALS}test_convs2s.py::test_"
HYBRIDS = f"{RIVALS}hybrids.py"
OF_PROCESSES = "tests/training/test_loop.py::test_two_processes_train_a_system_before_the_transformer_as_one_does"
BOTH_WAYS = tuple(f"{OF_RECURRENT}both_ways_are_pytorchs_packed_layer[{pair}]" for pair in ("LSTM-LSTM", "GRU-GRU"))
BLIND = tuple(f"{OF_ALL}padding_changes_nothing[{row}]" for row in ("static, last state", "soft alignment"))

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the backward LSTM reads padding first",
        RECURRENT,
        "turned.where(turned >= 0, place)",
        "x.shape[1] - 1 - place.expand(len(x), -1)",
        (*BLIND, *BOTH_WAYS),
    ),
    Defect(
        "the mean counts padding",
        RECURRENT,
        "return memory.sum(dim=1) / lengths_of(source).unsqueeze(-1)",
        "return memory.mean(dim=1)",
        (f"{OF_ALL}padding_changes_nothing[static, mean]",),
    ),
    Defect(
        "forget and input gate change places",
        RECURRENT,
        "cell = forget.sigmoid() * cell + let_in.sigmoid() * new.tanh()",
        "cell = let_in.sigmoid() * cell + forget.sigmoid() * new.tanh()",
        (f"{OF_RECURRENT}a_step_of_an_lstm_by_hand", f"{OF_RECURRENT}steps_are_the_sequence[LSTM]"),
    ),
    Defect(
        "maxout takes the smaller",
        RECURRENT,
        ".amax(dim=-1)",
        ".amin(dim=-1)",
        (f"{OF_RECURRENT}maxout_takes_the_larger_of_each_pair",),
    ),
    Defect(
        "soft alignment asks with the state before the last",
        ALIGNMENT,
        "            c, state = self.turn(e_i, c, state, attend)\n",
        "            c, state = self.turn(e_i, c, (states[-2] if len(states) > 1 else state[0], *state[1:]), attend)\n",
        (
            f"{OF_ALIGNMENT}the_recursion_by_its_equations[SoftAlignment]",
            f"{OF_ALL}a_search_finds_what_it_finds_on_the_plain_state[soft alignment]",
        ),
    ),
    Defect(
        "padding of the source is asked",
        ALIGNMENT,
        "(self.score(query, source.keys) + source.bias).softmax",
        "self.score(query, source.keys).softmax",
        (f"{OF_ALIGNMENT}weights_sum_to_one_and_padding_has_none", BLIND[1]),
    ),
    Defect(
        "soft alignment looks at all of the source alike",
        ALIGNMENT,
        "(self.score(query, source.keys) + source.bias).softmax",
        "(0 * self.score(query, source.keys) + source.bias).softmax",
        ("tests/model/test_toy_ladder.py::test_the_rungs_of_six_symbols_stand_in_order",),
    ),
    Defect(
        "a reorder forgets the cell state",
        STATE,
        "return replace(self, own=tuple(part[rows] for part in self.own))",
        "return replace(self, own=(*(part[rows] for part in self.own[:-1]), self.own[-1][: len(rows)]))",
        (f"{OF_ALL}a_state_follows_its_hypotheses_in_any_order[soft alignment]",),
    ),
    Defect(
        "ConvS2S sees one position of the future",
        f"{RIVALS}convolution.py",
        "self.before = self.reach if causal else self.reach // 2",
        "self.before = self.reach - 1 if causal else self.reach // 2",
        (
            f"{OF_ALL}the_past_alone_decides[ConvS2S]",
            f"{OF_ALL}the_past_alone_decides[ByteNet]",
            f"{OF_RIVALS}test_convolution.py::test_steps_are_the_sequence",
        ),
    ),
    Defect(
        "ConvS2S's convolutions see padding",
        CONVS2S,
        "self.dropout(x * real)",
        "self.dropout(x)",
        (f"{OF_ALL}padding_changes_nothing[ConvS2S]",),
    ),
    Defect(
        "embeddings of ConvS2S have unit variance",
        CONVS2S,
        "self.dropout(SPREAD * self.embedding(ids) + positions)",
        "self.dropout(self.embedding(ids) + positions)",
        (
            f"{OF_ALL}learning_begins_at_a_guess_and_reaches_every_number[ConvS2S]",
            f"{OF_CONVS2S}embeddings_and_positions_have_a_spread_of_a_tenth",
            f"{OF_CONVS2S}it_is_its_equations",
        ),
    ),
    Defect(
        "the mean of ConvS2S counts padding",
        CONVS2S,
        "m = (source != PAD).sum(dim=1).clamp(min=1)[:, None, None]",
        "m = torch.full((len(source), 1, 1), source.shape[1])",
        (f"{OF_ALL}padding_changes_nothing[ConvS2S]", f"{OF_CONVS2S}it_is_its_equations"),
    ),
    Defect(
        "the encoder of ConvS2S gets the whole gradient",
        CONVS2S,
        "other=1 / (2 * self.n_blocks)",
        "other=1",
        (f"{OF_CONVS2S}the_encoder_gets_its_share_of_the_gradient_and_the_embeddings_get_all_of_theirs",),
    ),
    Defect(
        "the source embeddings of ConvS2S get a share of their gradient",
        CONVS2S,
        "return torch.cat([z, e], dim=-1)",
        "return torch.cat([z, e.register_hook(lambda g: g / 4) and e], dim=-1)",
        (f"{OF_CONVS2S}the_encoder_gets_its_share_of_the_gradient_and_the_embeddings_get_all_of_theirs",),
    ),
    Defect(
        "a cache of before goes on after sentences have left",
        "repro/model/kv_cache.py",
        "self.kept.times += 1",
        "pass",
        ("tests/model/test_transformer.py::test_after_sentences_have_left_no_other_cache_of_the_search_goes_on",),
    ),
    Defect(
        "ByteNet's decoder stands one column beside its encoder",
        f"{RIVALS}bytenet.py",
        "u = F.pad(memory[:, :n], (0, 0, 0, max(0, n - memory.shape[1])))",
        "u = F.pad(memory[:, : n - 1], (0, 0, 1, max(0, n - 1 - memory.shape[1])))",
        (
            f"{OF_RIVALS}test_bytenet.py::test_a_token_of_the_decoder_sees_its_own_column_and_none_beyond_the_source",
            f"{OF_ALL}a_search_finds_what_it_finds_on_the_plain_state[ByteNet]",
        ),
    ),
    Defect(
        "a hybrid's convolution sees padding",
        HYBRIDS,
        "x if self.causal else x * _real(bias).unsqueeze(-1)",
        "x",
        (f"{OF_ALL}padding_changes_nothing[encoder: convolutional]",),
    ),
    Defect(
        "a hybrid's slot stands on the other side",
        HYBRIDS,
        "for layer in stacks[self.side]:",
        'for layer in stacks["encoder"]:',
        (f"{OF_RIVALS}test_hybrids.py::test_the_slots_of_one_side_alone_are_another",),
    ),
    Defect(
        "a rival is wider than fits",
        f"{RIVALS}size.py",
        "width = widths[n_fitting - 1]",
        "width = widths[n_fitting]",
        (f"{OF_ALL}it_is_as_large_as_the_base_and_no_larger[soft alignment]",),
    ),
    Defect(
        "the embedded target of recurrent rows is not dropped",
        RECURRENT,
        "e = self.dropout(self.embedding(decoder_in))",
        "e = self.embedding(decoder_in)",
        tuple(f"{OF_ALL}dropout_stands_where_it_is_said_to[{row}]" for row in ("simple", "static, mean")),
    ),
    Defect(
        "what the softmax reads of soft alignment is not dropped",
        ALIGNMENT,
        "r: Tensor = self.dropout(",
        "r: Tensor = (",
        (f"{OF_ALL}dropout_stands_where_it_is_said_to[soft alignment]",),
    ),
    Defect(
        "recurrent rows do not ask for a cut",
        RECURRENT,
        "    gradient_norm = GRADIENT_NORM\n",
        "",
        (f"{OF_ALL}gradients_of_recurrent_rows_and_of_convs2s_are_cut_to_norm_one",),
    ),
    Defect(
        "the gradient of a recurrent row is not cut",
        "repro/training/module.py",
        "factor = (longest / norm).clamp(max=1.0)",
        "factor = torch.ones_like(norm)",
        (
            "tests/training/test_module.py::"
            "test_a_gradient_is_cut_where_its_system_says_so_and_keeps_its_direction[1000.0-Cut-0.5]",
        ),
    ),
    Defect(
        "each process cuts the gradient by a norm of its own",
        "repro/training/module.py",
        "cut(gradients, norm, self.gradient_norm)",
        "cut(gradients, norm * (1 + self.trainer.global_rank), self.gradient_norm)",
        tuple(f"{OF_PROCESSES}[{row}]" for row in ("soft alignment", "ConvS2S")),
    ),
    Defect(
        "a gradient that is short is made long",
        "repro/training/module.py",
        "factor = (longest / norm).clamp(max=1.0)",
        "factor = longest / norm",
        (
            "tests/training/test_module.py::"
            "test_a_gradient_is_cut_where_its_system_says_so_and_keeps_its_direction[0.001-Cut-0.5]",
        ),
    ),
    # what is shown of them
    Defect(
        "the third of a translation is held against all of its reference",
        "repro/decoding/counts.py",
        "of[len(of) * k // 3 : len(of) * (k + 1) // 3]",
        "of[: len(of) * (k + 1) // 3]",
        ("tests/decoding/test_counts.py::test_thirds_by_hand",),
    ),
    Defect(
        "parts by length are in the order of the text",
        "repro/results/parts.py",
        'order = np.argsort(np.asarray(source), kind="stable")',
        "order = np.arange(len(source))",
        ("tests/results/test_parts.py::test_parts_by_length_are_of_the_shortest_and_the_longest_whatever_their_order",),
    ),
    Defect(
        "a row that took less is not named",
        "repro/pages/by_length.py",
        "if abs(of) > MUCH",
        "if of > MUCH",
        ("tests/pages/test_by_length.py::test_rows_that_took_a_tenth_more_or_less_are_named",),
    ),
    Defect(
        "a search that reads another prefix than training is let through",
        "repro/runs/refused.py",
        "if difference > TOLERANCE * size:",
        "if difference != difference:",
        (
            "tests/runs/test_refused.py::test_a_search_that_reads_another_prefix_than_training_is_refused[segments]",
            "tests/runs/test_refused.py::test_a_search_that_reads_another_prefix_than_training_is_refused[forgetful]",
        ),
    ),
    Defect(
        "hypotheses of the trial never change places",
        "repro/runs/refused.py",
        "torch.tensor([1, 0])",
        "torch.tensor([0, 1])",
        ("tests/runs/test_refused.py::test_a_search_that_reads_another_prefix_than_training_is_refused[forgetful]",),
    ),
)
