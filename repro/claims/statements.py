"""What teaching texts say around the paper, in our own words, and what would settle it: a list like that of the claims.

Judged by the same rules as the claims, with an error rate of its own: no statement takes level from a claim. Like
theirs, its digest is kept with each run, so a run settles what was listed when it began. A statement that is wrong as
it is said stands here as it is said, with tests that show the opposite.
"""

from repro.claims.catalogue import CLAIMS, PICTURE
from repro.claims.claim import (
    B0,
    BLEU,
    H1,
    H4,
    H16,
    H32,
    LOG_PPL,
    Claim,
    best,
    direction,
    elsewhere,
    structural,
)

STATED = "model/test_statements.py::test_"
SCORES, SELECTION, POSITIONS, PARTS, LADDER = "lab_scores", "lab_selection", "lab_positions", "lab_parts", "ladder"
NO_MASK = f"{PARTS}/no mask (PPL means nothing)"
SIMPLE, STATIC, ALIGNED = (f"{LADDER}/{row}" for row in ("simple", "static, mean", "soft alignment"))
CODES = tuple(f"{POSITIONS}/{row}" for row in ("none", "scalar", "one-hot", "learned"))

STATEMENTS: tuple[Claim, ...] = (
    # cost
    structural(
        "S01",
        "2, 4",
        "The path between two positions grows exponentially with their distance in ByteNet",
        "complexity/test_measure.py::test_the_depth_that_connects_all_pairs",
        holds=False,
        note="Logarithmically, as dilations multiply; linearly in a stack without them, as in ConvS2S.",
    ),
    structural(
        "S02",
        "4",
        "Convolutions cannot work on all positions at once, as their layers are stacked",
        "complexity/test_measure.py::test_only_a_recurrence_has_to_wait_longer_for_more",
        holds=False,
    ),
    structural(
        "S03",
        "1, 2",
        "Attention made recurrent models parallel",
        f"{STATED}soft_alignment_waits_for_each_step_and_the_transformer_for_none",
        holds=False,
    ),
    # positions
    structural(
        "S04",
        "3.5",
        "The position sets the frequency of its code and the dimension a phase",
        f"{STATED}the_dimension_alone_sets_the_wavelength",
        holds=False,
    ),
    structural(
        "S05a",
        "3.5",
        "Among position codes, only sinusoids turn a distance into a linear map",
        f"{STATED}a_shift_is_linear_for_sinusoids_and_one_hot_codes_and_affine_for_a_number",
        holds=False,
    ),
    structural(
        "S05b",
        "3.5",
        "Sinusoids are bounded, and their products depend on the distance alone",
        f"{STATED}products_of_sinusoids_know_the_distance_and_a_number_grows",
    ),
    best("S06", "3.5", "Sinusoids are the best of the codes that were tried", (B0, *CODES), (B0,)),
    direction("S21", "3.5", "The model is worse without positions", B0, f"{POSITIONS}/none", scale="laptop"),
    # how it is built
    structural(
        "S07",
        "3.1",
        "What the decoder adds to the two sub-layers of the encoder is masked attention",
        f"{STATED}what_the_decoder_has_beyond_the_encoder_is_attention_to_the_source_which_is_not_masked",
        holds=False,
    ),
    structural("S08", "3.2.2", "W^O is d_v x d_model", f"{STATED}the_output_matrix_is_h_d_v_by_d_model", holds=False),
    structural(
        "S30",
        "3.2",
        "6 tokens x 300 times 300 x 64 give 6 x 64, and keys are as many as values",
        f"{STATED}six_tokens_of_300_by_300_x_64_give_6_x_64_and_keys_are_as_many_as_values",
    ),
    structural(
        "S32",
        "5.4",
        "Residual dropout stands before sum and norm",
        f"{STATED}residual_dropout_stands_before_sum_and_norm",
    ),
    structural(
        "S29",
        "3.2.2",
        "Heads cost nothing: as many parameters and operations for one as for 32",
        f"{STATED}heads_cost_neither_parameters_nor_operations",
    ),
    best("S18", "3.2.2", "8 or 16 heads are best", (H1, H4, B0, H16, H32), (B0, H16)),
    # softmax and scores
    structural("S09", "3.2.1", "Softmax of [a, a, 2a] goes to one-hot as a grows", f"{STATED}softmax_of_a_a_2a"),
    structural(
        "S10",
        "3.2.1",
        "Large inputs saturate softmax",
        f"{STATED}gaps_saturate_softmax_and_size_does_not",
        holds=False,
        note="Gaps between inputs do, and [a, a, a] is uniform for every a.",
    ),
    structural(
        "S11",
        "3.2.1",
        "The Jacobian of softmax is diag(y) - y y^T, and zero where y is one-hot",
        f"{STATED}the_jacobian_of_softmax_and_that_it_vanishes_at_one_hot",
    ),
    structural(
        "S12",
        "3.2.1",
        "q k has variance d_k, and 1 once it is scaled",
        f"{STATED}a_product_of_independent_unit_entries_has_variance_d_k_and_scaled_1",
        note="For independent entries of variance 1, which a trained model need not have.",
    ),
    direction(
        "S13a", "3.2.1", "The model is worse without the scale, at the base's d_k", B0, f"{SCORES}/dot", scale="laptop"
    ),
    direction(
        "S13b",
        "3.2.1",
        "The model is worse without the scale, at d_k = d_model",
        f"{SCORES}/scaled dot, h=1",
        f"{SCORES}/dot, h=1",
        scale="laptop",
    ),
    # projections and heads
    structural(
        "S14",
        "3.2.2",
        "Where queries are keys, A matters to B as much as B to A",
        f"{STATED}where_queries_are_keys_scores_are_symmetric_and_weights_are_not",
        holds=False,
        note="Scores are symmetric, weights are not.",
    ),
    structural(
        "S15a",
        "3.2.2",
        "Separate W^Q and W^K can express more than a shared one",
        f"{STATED}a_shared_matrix_cannot_hold_who_follows_whom_and_two_can",
    ),
    direction(
        "S15b", "3.2.2", "Separate W^Q and W^K are better than a shared one", B0, f"{SCORES}/K = Q", scale="laptop"
    ),
    structural(
        "S16a",
        "3.2.2",
        "Heads differ by their initial weights alone",
        f"{STATED}heads_that_start_alike_stay_alike_and_are_one",
        note="Their slices of W^O must start alike as well.",
    ),
    structural(
        "S16b",
        "3.2.2",
        "Heads stay alike if only their W^Q, W^K and W^V start alike",
        f"{STATED}heads_that_start_alike_but_for_the_output_matrix_part_at_once",
        holds=False,
    ),
    elsewhere(
        "S17", "3.2.2", "The heads of a layer attend to the same, or to different things", "qualitative", PICTURE
    ),
    # selection
    structural(
        "S19a",
        "3.2.1",
        "Hard attention cannot be trained by back-propagation",
        f"{STATED}hard_attention_is_not_trained_by_its_gradient_but_by_one_that_goes_straight_through",
        note="Its scores are not trained by their own gradient, but are by a straight-through one.",
    ),
    direction(
        "S19b",
        "3.2.1",
        "A straight-through gradient makes hard attention better",
        f"{SELECTION}/hard, straight-through",
        f"{SELECTION}/hard",
        scale="laptop",
    ),
    structural(
        "S20",
        "3.2.1",
        "The mean of hard attention is soft attention",
        f"{STATED}the_mean_of_hard_attention_is_soft_attention",
    ),
    direction("S25a", "3.2.1", "Softmax is better than sigmoid weights", B0, f"{SELECTION}/sigmoid", scale="laptop"),
    direction("S25b", "3.2.1", "Softmax is better than ReLU weights", B0, f"{SELECTION}/ReLU", scale="laptop"),
    direction(
        "S25c",
        "3.2.1",
        "Softmax is better than the scores themselves as weights",
        B0,
        f"{SELECTION}/linear",
        scale="laptop",
    ),
    # parts
    direction(
        "S22a",
        "3.3",
        "The model is worse without the feed-forward network",
        B0,
        f"{PARTS}/no feed-forward",
        scale="laptop",
    ),
    direction(
        "S22b",
        "3.3",
        "The model is worse without it at equal parameters, too",
        B0,
        f"{PARTS}/no feed-forward, 7/3 N",
        scale="laptop",
    ),
    structural(
        "S23a",
        "3.1",
        "Residuals let a layer of the paper fall back to the identity",
        f"{STATED}a_layer_can_fall_back_to_the_identity_in_pre_norm_and_to_a_norm_in_post_norm",
        holds=False,
        note="They do in pre-norm; in the paper's layer a norm stands between.",
    ),
    direction("S23b", "3.1", "The model is worse without residuals", B0, f"{PARTS}/no residual", scale="laptop"),
    direction(
        "S24a",
        "3.2.3",
        "Without its mask the decoder predicts the next token better, as it reads the whole reference, that token too",
        NO_MASK,
        B0,
        scale="laptop",
        endpoints=(LOG_PPL,),
    ),
    direction(
        "S24b", "3.2.3", "Without its mask the decoder translates worse", B0, NO_MASK, scale="laptop", endpoints=(BLEU,)
    ),
    direction(
        "S28a",
        "3.1",
        "The model is worse without norms after the same number of updates",
        B0,
        f"{PARTS}/no norm",
        scale="laptop",
    ),
    structural(
        "S28b",
        "3.1",
        "Every block ends in a norm",
        f"{STATED}a_block_ends_in_a_norm_in_post_norm_only",
        note="In the paper's post-norm; in pre-norm none does.",
    ),
    # the line of systems
    direction(
        "S26a", "1", "A context at every step is better than a first state alone", STATIC, SIMPLE, scale="laptop"
    ),
    direction(
        "S26b", "1", "A new context at every step is better than one for all steps", ALIGNED, STATIC, scale="laptop"
    ),
    direction("S26c", "1", "The Transformer is better than soft alignment", B0, ALIGNED, scale="single_gpu"),
    elsewhere(
        "S27",
        "1",
        "The one vector of a simple system favours the last words of the source and fades with each word that is "
        "written, which a static context repairs",
        "qualitative",
        "shown, not listed before its runs: norms of gradients and BLEU by place in the translation, by "
        "experiments/figures.py, and an answer among the questions of this page where the ladder was run",
    ),
    elsewhere(
        "S31",
        "6.3",
        "The paper tested translation only",
        "qualitative",
        "right of the conference version; the one judged here has parsing, Table 4",
    ),
    elsewhere(
        "S33",
        "6",
        "A Transformer needs more text than a convolution",
        "qualitative",
        "needs rows on 5, 20 and 100 % of the training text, which are not made yet",
    ),
)
LISTED = (*CLAIMS, *STATEMENTS)
