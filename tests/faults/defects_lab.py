"""Defects of the variants in the lab, which go on training and translating; and the tests that notice."""

from faults.defect import Defect

LAB, OF_LAB, OF_ALL = "repro/model/ablations/", "tests/model/ablations/test_", "tests/model/test_variants.py::test_"
OF_STATEMENTS = "tests/model/test_statements.py::test_"
SELECTION, REACH, NORM = f"{LAB}selection.py", f"{LAB}reach.py", f"{LAB}batch_norm.py"
HIDDEN, BLIND = f"{OF_LAB}selection.py::test_a_hidden_key_has_no_weight", f"{OF_ALL}padding_changes_nothing"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a mask after the softmax",
        "repro/model/attention.py",
        "    if bias is not None:\n        scores_BHQK = scores_BHQK + bias\n    return scores_BHQK.softmax(dim=-1)",
        "    weights = scores_BHQK.softmax(dim=-1)\n    return weights if bias is None else weights * (bias == 0)",
        (
            "tests/model/test_attention.py::test_equals_the_library[True]",
            f"{OF_ALL}padding_changes_nothing[False-dot]",
            f"{OF_ALL}the_past_alone_decides[False-additive]",
        ),
    ),
    Defect(
        "hidden keys keep their weight where it is no softmax",
        SELECTION,
        ".masked_fill(~seen, 0.0)",
        "",
        tuple(f"{HIDDEN}[{rule}-False]" for rule in ("SigmoidWeights", "LinearWeights")),
    ),
    Defect(
        "hidden keys are counted where weights are shared out",
        SELECTION,
        "n_seen = seen.sum(dim=-1, keepdim=True)",
        "n_seen = torch.ones_like(seen).sum(dim=-1, keepdim=True)",
        (f"{BLIND}[False-sigmoid]", f"{BLIND}[False-ReLU]"),
    ),
    Defect(
        "plain hard attention has a gradient",
        SELECTION,
        "    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:\n"
        "        return one_hot_of_best(scores_BHQK, bias)\n",
        "    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:\n"
        "        soft = softmax_of_seen(scores_BHQK, bias)\n"
        "        return one_hot_of_best(scores_BHQK, bias) + (soft - soft.detach())\n",
        (
            f"{OF_ALL}learning_begins_at_a_guess_and_reaches_every_number[hard]",
            f"{OF_STATEMENTS}hard_attention_is_not_trained_by_its_gradient_but_by_one_that_goes_straight_through[Hard-False]",
        ),
    ),
    Defect(
        "a key is drawn after training, too",
        SELECTION,
        "if not self.training:",
        "if False:",
        (f"{OF_LAB}selection.py::test_a_sample_is_one_key_and_the_best_one_after_training",),
    ),
    Defect(
        "what is drawn has the wrong odds",
        SELECTION,
        "waited = -torch.rand_like(soft, dtype=torch.float32).log()",
        "waited = torch.rand_like(soft, dtype=torch.float32)",
        (f"{OF_STATEMENTS}the_mean_of_hard_attention_is_soft_attention",),
    ),
    Defect(
        "the last segment is as long as the others",
        REACH,
        "(scores * seen).sum(dim=-1) / seen.sum(dim=-1).clamp(min=1)",
        "(scores * seen).mean(dim=-1)",
        (f"{OF_LAB}selection.py::test_two_levels_are_each_shared_out_whole[TwoLevel-4]",),
    ),
    Defect(
        "segments of the source are longer than is said",
        REACH,
        "segment: int = 4",
        "segment: int = 5",
        (f"{OF_LAB}selection.py::test_two_levels_are_each_shared_out_whole[TwoLevel-4]",),
    ),
    Defect(
        "places begin closer together than tokens",
        f"{LAB}static.py",
        "std=0.5**0.5",
        "std=0.5",
        (f"{OF_LAB}relative.py::test_the_first_scores_of_places_spread_as_those_of_tokens",),
    ),
    Defect(
        "a restricted decoder sees one position more",
        REACH,
        "distances(read.ids) > -self.r",
        "distances(read.ids) >= -self.r",
        (f"{OF_LAB}reach.py::test_the_encoder_sees_half_of_them_on_each_side_and_the_decoder_the_last",),
    ),
    Defect(
        "distances are taken from the wrong side",
        f"{LAB}relative.py",
        "(places - places[:, None]).clamp",
        "(places[:, None] - places).clamp",
        (f"{OF_LAB}relative.py::test_in_three_loops",),
    ),
    Defect(
        "values know no distance",
        f"{LAB}relative.py",
        "a_QKE = self.values[self._distances(q_BHQE, k_BHKE)]",
        "a_QKE = 0 * self.values[self._distances(q_BHQE, k_BHKE)]",
        (
            f"{OF_LAB}relative.py::test_in_three_loops",
            f"{OF_ALL}learning_begins_at_a_guess_and_reaches_every_number[relative]",
        ),
    ),
    Defect(
        "a search of relative positions keeps its keys in a cache",
        f"{LAB}relative.py",
        "class RelativePositions(Plain, Transformer)",
        "class RelativePositions(Transformer, Plain)",
        (f"{OF_ALL}a_state_follows_its_hypotheses_in_any_order[relative]",),
    ),
    Defect(
        "batch norm counts padding",
        NORM,
        "share = self.real.to(x.dtype) / self.real.sum().clamp(min=1)",
        "share = torch.ones_like(x[..., :1]) / x[..., 0].numel()",
        (f"{OF_LAB}norms.py::test_batch_norm_in_loops", f"{BLIND}[True-batch norm]"),
    ),
    Defect(
        "running means follow ten times more slowly than is said",
        NORM,
        "MOMENTUM = 0.1 ",
        "MOMENTUM = 0.01 ",
        (f"{OF_LAB}norms.py::test_batch_norm_in_loops",),
    ),
    Defect(
        "a batch that is read twice moves running means twice",
        "repro/training/replay_check.py",
        "buffer.copy_(once)",
        "pass",
        (f"{OF_ALL}a_run_that_is_cut_off_goes_on_to_the_very_bits[batch norm]",),
    ),
    Defect(
        "heads start alike but for the output matrix",
        f"{LAB}sharing.py",
        "columns[:, 1:] = columns[:, :1]",
        "pass",
        (f"{OF_STATEMENTS}heads_that_start_alike_stay_alike_and_are_one",),
    ),
    Defect(
        "the residual is left out of pre-norm",
        f"{LAB}norms.py",
        "return x + dropout(sub_layer(norm(x)))",
        "return dropout(sub_layer(norm(x)))",
        (
            f"{OF_LAB}norms.py::test_around_by_hand[PreNorm-3.6666666666666665]",
            f"{OF_STATEMENTS}a_layer_can_fall_back_to_the_identity_in_pre_norm_and_to_a_norm_in_post_norm",
        ),
    ),
    Defect(
        "the norm of the feed-forward network stays without it",
        f"{LAB}parts.py",
        "norms[-1] = nn.Identity()",
        "norms[-1] = norms[-1]",
        (
            f"{OF_LAB}norms.py::test_without_a_feed_forward_network_attention_alone_is_normalised",
            f"{OF_ALL}its_parameters_are_those_of_the_arithmetic[no feed-forward]",
        ),
    ),
    Defect(
        "updates with batch norm are shared out among processes",
        "repro/model/protocol.py",
        "if parts > 1 and",
        "if parts > 99 and",
        ("tests/runs/test_system.py::test_nor_into_micro_batches",),
    ),
    Defect(
        "the end of a shorter sentence is read where nothing is masked",
        "repro/model/masks.py",
        "return (decoder_in > EOS) | first",
        "return (decoder_in != PAD) | first",
        (
            f"{OF_ALL}a_sentence_in_a_batch_is_read_as_it_is_alone[no mask (PPL means nothing)]",
            f"{OF_LAB}norms.py::test_a_model_tells_its_norms_which_tokens_are_real",
        ),
    ),
)
