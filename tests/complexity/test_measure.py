"""The layers of Table 1 against PyTorch's own, explicit loops and a mask; what is counted, followed and timed against
sums that a reader can do. Nothing here asks how long it took.
"""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.complexity import measure
from repro.complexity.measure import N_HEADS, STACKS, Convolution, ElmanCell, GatedCell, Recurrent, chain, depth, layers
from repro.model.attention import attention
from repro.model.masks import hidden_bias
from repro.results.measured import Count, Grid, Measured, load, save

# The layers, in float64

B, LENGTH, WIDTH, H = 2, 11, 6, 3


def drawn(layer: nn.Module) -> nn.Module:
    """The layer in float64 with every parameter drawn, biases too: where they are zero, a lost one goes unseen."""
    layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def some_input(*shape: int) -> Tensor:
    torch.manual_seed(7)
    return torch.randn(shape or (B, LENGTH, WIDTH), dtype=torch.float64)


def test_a_layer_keeps_the_shape_and_is_the_sum_of_its_parts() -> None:
    attentions: list[measure.Layer] = [
        measure.FullAttention(d=WIDTH, n_heads=H),
        measure.RestrictedAttention(d=WIDTH, n_heads=H, r=5),
    ]
    convolutions: list[measure.Layer] = [Convolution(d=WIDTH, k=5), measure.SeparableConvolution(d=WIDTH, k=5)]
    for layer in (*attentions, *convolutions, Recurrent(ElmanCell(WIDTH)), Recurrent(GatedCell(WIDTH))):
        x = some_input()
        drawn(layer)
        mixed = layer.mix(*layer.project(x))
        assert mixed.shape == layer(x).shape == x.shape
        torch.testing.assert_close(getattr(layer, "output", nn.Identity())(mixed), layer(x))


@pytest.mark.parametrize("r", [1, 5, 2 * LENGTH - 1])
def test_restricted_attention_is_full_attention_behind_a_band(r: int) -> None:
    x, near = some_input(), torch.arange(LENGTH)
    full, band = (
        drawn(measure.FullAttention(d=WIDTH, n_heads=H)),
        measure.RestrictedAttention(d=WIDTH, n_heads=H, r=r).double(),
    )
    band.load_state_dict(full.state_dict())
    may_see = (near.unsqueeze(1) - near).abs() <= r // 2
    torch.testing.assert_close(band(x), full(x, hidden_bias(may_see, x.dtype)))


@pytest.mark.parametrize(("cell", "library"), [(ElmanCell, nn.RNN), (GatedCell, nn.GRU)])
def test_the_recurrences_are_the_librarys(cell: Any, library: Any) -> None:
    x, ours, theirs = some_input(), Recurrent(cell(WIDTH)), library(WIDTH, WIDTH, batch_first=True).double()
    drawn(ours)
    for name, part in {"ih": ours.cell.input, "hh": ours.cell.state}.items():
        bias = torch.zeros(WIDTH) if part.bias is None else part.bias
        theirs.load_state_dict({f"weight_{name}_l0": part.weight, f"bias_{name}_l0": bias}, strict=False)
    torch.testing.assert_close(ours(x), theirs(x)[0])


def convolved(x: Tensor, kernel: nn.Conv1d, dilation: int) -> Tensor:
    """Position by position, tap by tap: a tap beyond the ends is not there. Kernel [d, d, k]."""
    k = kernel.weight.shape[2]
    result = torch.empty_like(x)
    for i in range(x.shape[1]):
        result[:, i] = kernel.bias
        for tap in range(k):
            j = i + (tap - k // 2) * dilation
            if 0 <= j < x.shape[1]:
                result[:, i] += x[:, j] @ kernel.weight[:, :, tap].T
    return result


@pytest.mark.parametrize("k", [1, 5, 2 * LENGTH + 1])
def test_a_convolution_tap_by_tap(k: int) -> None:
    x, layer = some_input(), Convolution(d=WIDTH, k=k)
    drawn(layer)
    torch.testing.assert_close(layer(x), convolved(x, layer.kernel, dilation=1))


def test_a_separable_convolution_channel_by_channel() -> None:
    x, layer = some_input(), measure.SeparableConvolution(d=WIDTH, k=3)
    drawn(layer)
    mixed = torch.stack(
        [
            F.conv1d(x[:, :, c].unsqueeze(1), layer.kernel.weight[c : c + 1], layer.kernel.bias[c : c + 1], padding=1)
            for c in range(WIDTH)
        ],
        dim=-1,
    ).squeeze(1)
    torch.testing.assert_close(layer(x), layer.output(mixed))
    assert layer.kernel.weight.numel() == 3 * WIDTH


@pytest.mark.parametrize("depth", [1, 3])
def test_dilated_convolutions_tap_by_tap(depth: int) -> None:
    # on a sequence so wide that its own ends are out of sight of the positions that are compared
    x, stack, beyond = some_input(), measure.Dilated(d=WIDTH, k=3, depth=depth), 14
    drawn(stack)
    expected = F.pad(x, (0, 0, beyond, beyond))
    for kernel, dilation in zip(stack.kernels, (1, 3, 9), strict=False):
        expected = convolved(expected, kernel, dilation)
    torch.testing.assert_close(stack(x), expected[:, beyond:-beyond])


def test_additive_attention_pair_by_pair() -> None:
    q, k, v = (some_input(B, length, WIDTH) * scale for length, scale in ((5, 1.0), (7, 2.0), (7, 3.0)))
    w = some_input(WIDTH)
    for b in range(B):
        for i in range(5):
            scores = torch.stack([w @ torch.tanh(q[b, i] + k[b, j]) for j in range(7)])
            torch.testing.assert_close(measure.additive_attention(q, k, v, w)[b, i], scores.softmax(0) @ v[b])


@pytest.mark.parametrize("window", [0, 4])
def test_a_window_without_a_centre_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match=f"must be odd to have a centre, got {window}. Use {max(window, 0) + 1}."):
        Convolution(d=WIDTH, k=window)
    with pytest.raises(ValueError, match="must be odd"):
        measure.RestrictedAttention(d=WIDTH, n_heads=H, r=window)


# What is measured

N, D, K = 7, 8, 3
WINDOWED = ("convolution", "separable", "restricted")
TINY = Grid(
    n=(7, 11),
    n_odd=(7,),
    d=(8, 16),
    windows=(3, 5),
    n_paths=(4, 9),
    n_timed=(4, 5),
    d_timed=(8, 16),
    n_scored=(3, 5),
    d_k=(2, 7),
    rounds=2,
)


def counted(layer: str, *, n: int = N, d: int = D, window: int | None = None) -> Count:
    """What is counted of one layer on tensors without data."""
    with torch.device("meta"):
        built = {(name, of): layer for name, of, layer in layers(d, [] if window is None else [window])}
        return measure.count(layer, built[layer, window], n=n, d=d, window=window)


@pytest.mark.parametrize(
    ("layer", "window", "mixing", "rest"),
    [  # multiplications
        ("self_attention", None, 2 * N * N * D, 4 * N * D * D),
        ("recurrent", None, N * D * D, N * D * D),
        ("gated", None, 3 * N * D * D, 3 * N * D * D),
        ("convolution", K, K * N * D * D, 0),
        ("separable", K, K * N * D, N * D * D),
        ("restricted", K, 2 * K * N * D, 4 * N * D * D),
    ],
)
def test_operations_are_those_of_the_products(layer: str, window: int | None, mixing: int, rest: int) -> None:
    found = counted(layer, window=window)
    assert (found.mixing_flops, found.flops) == (2 * mixing, 2 * (mixing + rest))  # and as many additions


def test_without_data_the_counts_are_the_same() -> None:
    for name, window, layer in layers(D, [K]):
        assert measure.count(name, layer, n=N, d=D, window=window) == counted(name, window=window)


@pytest.fixture(scope="module")
def measured() -> Measured:
    return measure.measure_layers(TINY, threads=torch.get_num_threads())


def test_every_size_is_counted(measured: Measured) -> None:
    found = [(line.layer, line.n, line.d, line.window) for line in measured.counts]
    assert len(found) == len(set(found)) + len(TINY.d)  # attention at n = 7 stands beside k = n once more
    plain = itertools.product(("self_attention", "recurrent", "gated"), TINY.n, TINY.d, [None])
    windowed = itertools.product(WINDOWED, TINY.n, TINY.d, TINY.windows)
    assert {*plain, *windowed} <= {*found}
    assert ("separable", 7, 16, 7) in found  # k = n
    beside = next(line for line in measured.counts if line.layer == "feed_forward" and (line.n, line.d) == (11, 16))
    assert beside.flops == 2 * (2 * 11 * 16 * 64)


def test_what_is_kept_is_counted_once_and_without_parameters() -> None:
    linear, x = nn.Linear(3, 5, bias=False), torch.ones(2, 3, requires_grad=True)

    def work() -> Tensor:
        result = linear(x).tanh()  # x for the weights, the weights for x, the result of tanh
        return result * result  # both factors, which are that result

    assert measure.saved_bytes(work, without=linear.parameters()) == 4 * (2 * 3 + 2 * 5)
    assert measure.saved_bytes(work) == 4 * (2 * 3 + 2 * 5 + 3 * 5)


def test_additive_scores_keep_every_pair_of_vectors(measured: Measured) -> None:
    n, d_k = 11, 7
    kept = {
        key[0]: measure.saved_bytes(work) for key, work, _ in measure.scorings(replace(TINY, n_scored=(n,), d_k=(d_k,)))
    }
    assert N_HEADS * 4 * n * n * d_k <= kept["additive"]
    assert kept["dot_product"] < N_HEADS * 4 * (2 * n * n + 5 * n * d_k)
    for line in measured.scoring_counts:
        assert line.flops == N_HEADS * 2 * 2 * line.n**2 * line.d_k, "both have the products of scores and weighted sum"


def test_a_chain_is_the_longest_way() -> None:
    a, b = (torch.eye(3, requires_grad=True) for _ in range(2))
    assert chain(a + b) == 0
    assert chain(a @ b + b) == 1
    assert chain((a @ b) @ (b @ a)) == 2
    assert chain(((a @ b) @ a) @ b + a @ b) == 3
    assert chain(Recurrent(ElmanCell(2)).mix(torch.ones(1, 300, 2))) == 300


def test_only_a_recurrence_has_to_wait_longer_for_more(measured: Measured) -> None:
    found = {(line.layer, line.window, line.n): line.steps for line in measured.steps}
    for n in TINY.n_paths:
        assert found["recurrent", None, n] == found["gated", None, n] == n
        assert found["self_attention", None, n] == found["restricted", 3, n] == 2
        assert found["convolution", 5, n] == found["separable", 3, n] == 1


@pytest.mark.parametrize(
    ("name", "window", "n", "layers"),
    [
        ("convolution", 5, 9, 4),  # 2 further by each layer
        ("convolution", 5, 10, 5),
        ("restricted", 5, 10, 5),
        ("dilated", 3, 5, 2),  # 3^2 = 9 positions in sight: 4 to each side
        ("dilated", 3, 6, 3),
        ("dilated", 3, 15, 4),
        ("dilated", 5, 13, 2),
    ],
)
def test_the_depth_that_connects_all_pairs(name: str, window: int, n: int, layers: int) -> None:
    torch.manual_seed(0)
    assert depth(lambda depth: STACKS[name](window, depth), n) == layers
    assert not measure.connects_all(STACKS[name](window, layers - 1), n)


def test_all_pairs_means_all_pairs_and_layers_that_never_connect_are_an_error() -> None:
    # the outputs beyond the first sixteen are asked as well
    class ShortSighted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            total = x.sum(dim=1, keepdim=True).expand_as(x)
            return torch.cat([total[:, :-1], x[:, -1:]], dim=1)

    assert not measure.connects_all(ShortSighted(), 20)
    with pytest.raises(ValueError, match="Expected 6 positions to be connected by at most 6 layers"):
        depth(lambda depth: Convolution(d=2, k=1), 6)


def test_paths_are_followed_at_every_length_and_window(measured: Measured) -> None:
    assert [measure.steps_to_first(Recurrent(ElmanCell(2)), n) for n in (1, 2, 17)] == [1, 2, 17]
    found = {(line.layer, line.n, line.window) for line in measured.paths}
    plain = itertools.product(("self_attention", "recurrent"), TINY.n_paths, [None])
    assert {line.path for line in measured.paths if line.layer == "self_attention"} == {1}
    assert found == {*plain, *itertools.product(STACKS, TINY.n_paths, TINY.windows)}


def test_rounds_are_interleaved_and_the_first_is_not_kept() -> None:
    order: list[str] = []
    ticks = itertools.accumulate(itertools.chain.from_iterable((0.5, i) for i in itertools.count(1)))
    work = {key: lambda key=key: order.append(key) for key in "ab"}
    assert measure.interleaved(work, rounds=3, clock=lambda: next(ticks)) == {"a": [3, 5, 7], "b": [4, 6, 8]}
    assert "".join(order) == "ab" * 4


def test_each_time_is_of_the_layer_of_its_name_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: dict[Any, Any] = {}
    monkeypatch.setattr(measure, "interleaved", lambda work, rounds, clock: timed.update(work) or {})
    measure.times(TINY, clock=lambda: 0.0)
    measure.scoring_times(TINY, clock=lambda: 0.0)
    kinds = {
        "self_attention": measure.FullAttention, "recurrent": ElmanCell, "gated": GatedCell, "convolution": Convolution,
        "separable": measure.SeparableConvolution, "restricted": measure.RestrictedAttention,
        "library_recurrent": nn.RNN, "library_gated": nn.GRU,
    }  # fmt: skip
    scores = {"dot_product": attention, "additive": measure.additive_attention}
    for (name, n, width, *window), work in timed.items():
        part, of = work.args
        if name in kinds:
            layer, [x] = part.func, part.args
            assert [*map(id, of)] == [id(x), *map(id, layer.parameters())]
            assert (x.shape, window) == ((1, n, width), [3 if name in WINDOWED else None])
            assert type(getattr(layer, "cell", layer)) is kinds[name]
        else:
            q, k, v, *w = part.args
            assert part.func is scores[name]
            assert [*map(id, of)] == [*map(id, (q, k, v))]
            assert q.shape == k.shape == v.shape == (N_HEADS, n, width)
            assert [of.shape for of in w] == [(width,)] * (name == "additive")
    assert {name for name, *_ in timed} == {*kinds, *scores}


def test_all_of_it_survives_the_file(measured: Measured, tmp_path: Path) -> None:
    save(tmp_path, measured)
    again = load(tmp_path, Measured)
    assert again
    assert again.counts == measured.counts
    assert again.times == measured.times
    assert {(time.layer, time.n, time.d) for time in again.times} == {
        *itertools.product(
            ("self_attention", "recurrent", "gated", *WINDOWED, "library_recurrent", "library_gated"),
            TINY.n_timed,
            TINY.d_timed,
        )
    }
    assert again.grid["windows"] == [3, 5]
