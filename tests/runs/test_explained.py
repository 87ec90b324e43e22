"""Each step and each gradient that is explained is that of the plain model; what is taken out is taken out, no more."""

import copy
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from looked_inside import HYPER, LINES, RUN, its_record, looked_at

from repro.cli import explain
from repro.cli.commands import main
from repro.decoding.search import Search
from repro.decoding.translate import translate
from repro.model.ablations.selection import LinearWeights
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.runs.explained import ATTENTION, LONGEST, Explained, Missing, explained, ids_of, measures, six_answers
from repro.runs.load import Trained, open_run
from repro.runs.refused import as_ids

MISSING: tuple[Missing, ...] = ("mask", "scale", "positions", "softmax")
SENTENCE, TARGET = LINES[0], LINES[3]


def kept_run(folder: Path, **other: Any) -> Path:
    """The folder of a finished run that was never trained."""
    run = looked_at(folder)
    tokenizer = run.prepared.tokenizer
    kept = {"sha256": tokenizer.sha256, "size": tokenizer.size}
    corpus = {"name": "grammar", "sha256": "ab" * 32, "n_train": 9, "n_dev": 2, "n_test": 3, "dropped": {}}
    its_record(**{"hyper": asdict(HYPER), "tokenizer": kept, "corpus": corpus, **other}).save(folder / "record.json")
    tokenizer.save(folder / "tokenizer.json")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory.mktemp("runs") / RUN)


@pytest.fixture(scope="module")
def trained(folder: Path) -> Trained:
    return open_run(folder)


@pytest.fixture(scope="module")
def seen(trained: Trained) -> Explained:
    return told(trained)


def told(trained: Trained, without: Missing | None = None) -> Explained:
    source, target = (ids_of(trained.tokenizer, text) for text in (SENTENCE, TARGET))
    return explained(trained, source, target[:-1], without)


def plain(trained: Trained, seen: Explained, model: Any = None) -> tuple[Any, torch.Tensor]:
    """The model itself in float64, after the backward pass of the same loss; and its logits."""
    model = copy.deepcopy(trained.model if model is None else model).double().eval()  # type: ignore[union-attr]
    logits = model(torch.tensor([seen.source_ids]), torch.tensor([[PAD, *seen.written_ids[:-1]]]))[0]
    torch.nn.functional.cross_entropy(logits, torch.tensor(seen.written_ids)).backward()
    return model, logits.detach()


def test_each_step_is_that_of_the_plain_model(trained: Trained, seen: Explained) -> None:
    model = copy.deepcopy(trained.model).double()
    given: dict[str, Any] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _, read, made, name=name: given.update({name: (read[0], made)}))
    source, read = torch.tensor([seen.source_ids]), torch.tensor([[PAD, *seen.written_ids[:-1]]])
    maps = model.attention_maps(source, read)
    assert seen.attention.keys() == {(kind, n) for kind in ATTENTION for n in (1, 2)} == seen.around.keys()
    for (kind, layer), steps in seen.attention.items():
        name = ATTENTION[kind].format(layer - 1)
        torch.testing.assert_close(steps.weights, maps[name])
        torch.testing.assert_close(steps.products / HYPER.d_k**0.5, steps.scores)
        torch.testing.assert_close(steps.weights @ steps.v, steps.heads)
        hidden = torch.where(steps.seen, steps.scores, -torch.inf)
        torch.testing.assert_close(hidden.softmax(-1), steps.weights)
        part: Any = model.get_submodule(name)
        attended, *feed_forward = seen.around[kind, layer]
        x, made = given[name]
        torch.testing.assert_close((attended.x, attended.made), (x, made))
        torch.testing.assert_close(part.queries(x), steps.q)
        torch.testing.assert_close(part.output(steps.heads.transpose(1, 2).flatten(2)), made)
        norm = name.replace("self_attention", "norms.0").replace("cross_attention", "norms.1")
        torch.testing.assert_close((attended.total, attended.normed), given[norm])
        assert len(feed_forward) == (kind != "decoder")
        for one in feed_forward:
            stack = name.rpartition(".")[0]
            torch.testing.assert_close((one.x, one.made), given[f"{stack}.feed_forward"])
            torch.testing.assert_close((one.total, one.normed), given[f"{stack}.norms.{2 if kind == 'cross' else 1}"])
    assert (seen.source[0], seen.source[-1], seen.read[0], seen.written[-1]) == ("the", "</s>", "(begin)", "</s>")


def test_logits_loss_and_gradients_are_those_of_the_plain_model(trained: Trained, seen: Explained) -> None:
    model, logits = plain(trained, seen)
    torch.testing.assert_close(seen.logits, logits)
    nll = torch.nn.functional.cross_entropy(logits, torch.tensor(seen.written_ids)).item()
    assert seen.loss == pytest.approx(nll)
    torch.testing.assert_close(seen.log_probs.mean().item(), -nll)
    for (name, of), other in zip(model.named_parameters(), seen.model.parameters(), strict=True):
        torch.testing.assert_close(other.grad, of.grad, msg=name)


def test_the_search_is_the_runs_own(trained: Trained, seen: Explained) -> None:
    model = copy.deepcopy(trained.model).double()
    [ids] = translate(model, as_ids(trained.tokenizer, [SENTENCE]), Search.of(trained.record.settings))
    assert seen.found == trained.tokenizer.decode(ids)
    assert explained(trained, seen.source_ids).written_ids == [*ids, EOS]


def test_without_the_mask_a_later_token_changes_an_earlier_row(trained: Trained, seen: Explained) -> None:
    other = told(trained, "mask")
    changed = [*seen.written_ids[:-2], seen.written_ids[0]]
    cases: tuple[tuple[Missing | None, bool], ...] = ((None, False), ("mask", True))
    for without, is_changed in cases:
        before, after = (
            explained(trained, seen.source_ids, ids, without).logits for ids in (seen.written_ids[:-1], changed)
        )
        assert bool((before[:-2] != after[:-2]).any()) == is_changed
    assert seen.by_later[0] > 0
    assert seen.by_later[1:].abs().max() == 0
    assert other.by_later[1:].min() > 0
    masked, bare = seen.attention["decoder", 1], other.attention["decoder", 1]
    torch.testing.assert_close(bare.scores, masked.scores)
    torch.testing.assert_close(bare.weights, masked.scores.softmax(-1))
    assert masked.weights.triu(1).abs().max() == 0
    assert masked.scores.grad is not None
    assert masked.scores.grad.triu(1).abs().max() == 0
    torch.testing.assert_close(other.attention["encoder", 2].weights, seen.attention["encoder", 2].weights)


def test_without_the_scale_it_is_a_model_whose_queries_are_larger(trained: Trained, seen: Explained) -> None:
    other, model = told(trained, "scale"), copy.deepcopy(trained.model).double()
    first = seen.attention["encoder", 1].scores
    torch.testing.assert_close(other.attention["encoder", 1].scores, first * HYPER.d_k**0.5)
    for part in model.modules():
        if hasattr(part, "d_queries"):
            for of in (part.weight, part.bias):
                of.data[: part.d_queries] *= HYPER.d_k**0.5
    torch.testing.assert_close(other.logits, plain(trained, seen, model)[1])


@pytest.mark.parametrize("learned", [False, True])
def test_without_positions_the_source_is_a_set(trained: Trained, learned: bool) -> None:
    if learned:
        hyper = replace(HYPER, learned_positions=True)
        torch.manual_seed(1)
        learner = Transformer(hyper, trained.tokenizer.size).eval()
        trained = Trained(record=its_record(hyper=asdict(hyper)), model=learner, tokenizer=trained.tokenizer)
    seen, other = told(trained), told(trained, "positions")
    model = copy.deepcopy(trained.model)
    for positions in (model.source_positions, model.target_positions):
        (positions.weight.data if learned else positions.table).zero_()
    torch.testing.assert_close(other.logits, plain(trained, seen, model)[1])
    assert seen.by_order > 1e-3
    assert other.by_order < 1e-9 * seen.by_order  # float64, whose rounding knows the order of sums


def test_without_the_softmax_weights_are_scores(trained: Trained, seen: Explained) -> None:
    model = Transformer(HYPER, trained.tokenizer.size, mix=LinearWeights)
    model.load_state_dict(trained.model.state_dict())
    other = told(trained, "softmax")
    torch.testing.assert_close(other.logits, plain(trained, seen, model)[1])
    steps = other.attention["encoder", 1]
    torch.testing.assert_close(steps.weights, steps.scores / len(seen.source_ids))


def test_the_six_answers_are_the_plain_models_gradients(trained: Trained, seen: Explained) -> None:
    layer = 2
    model, _ = plain(trained, seen)
    part = model.encoder[layer - 1].self_attention
    of_weights, of_mask, scale, residual, norm, softmax = (one.numbers for one in six_answers(seen, layer))
    wide = HYPER.n_heads * HYPER.d_k
    for name, rows in (("Q", slice(wide)), ("K", slice(wide, 2 * wide)), ("V", slice(2 * wide, None))):
        assert float(of_weights[f"||dL/dW_{name}||"]) == pytest.approx(part.weight.grad[rows].norm().item())
    assert of_weights["||dL/db_K||"] < 1e-12 < of_weights["||dL/db_Q||"]
    assert of_mask["decoder, scores of later tokens: largest |dL/ds|"] == 0
    assert of_mask["decoder, scores of earlier tokens: largest |dL/ds|"] > 0
    assert of_mask["log p of the first token, by what is read later"] == 0
    assert float(scale["ratio"]) == pytest.approx(scale["1 / sqrt(d_k)"]) == pytest.approx(HYPER.d_k**-0.5)
    assert norm["largest |mean| of a token's gradient"] < 1e-12
    assert norm["largest |cosine| of gradient and token"] < 1e-4  # not 0: NORM_EPS
    # by hand: x + f(x) sends back g + J^T g, and softmax p * (g - p . g)
    attended, steps = seen.around["encoder", layer][0], seen.attention["encoder", layer]
    x = attended.x.detach().requires_grad_()
    [through] = torch.autograd.grad(part(x), x, attended.total.grad)
    assert float(residual["through the sub-layer"]) == pytest.approx(through.norm().item())
    assert attended.total.grad is not None
    torch.testing.assert_close(attended.x.grad, attended.total.grad + through)
    p, g = steps.weights, steps.weights.grad
    assert g is not None
    torch.testing.assert_close(steps.scores.grad, p * (g - (p * g).sum(-1, keepdim=True)))
    for query in ("sharpest", "flattest"):
        assert softmax[f"{query} query: ||dL/d scores||"] <= 0.5 * softmax[f"{query} query: ||dL/d weights||"]
    assert softmax["sharpest query: its largest weight"] == p.max()


@pytest.mark.parametrize("without", MISSING)
def test_a_part_that_is_gone_shows_in_the_answers(trained: Trained, seen: Explained, without: Missing) -> None:
    other = told(trained, without)
    assert without in explain.WITHOUT
    before, after = ([one.numbers for one in six_answers(one, 1)] for one in (seen, other))
    assert measures(seen) != measures(other)
    assert (float(after[1]["decoder, scores of later tokens: largest |dL/ds|"]) > 0) == (without == "mask")
    assert float(after[2]["ratio"]) == pytest.approx(1 if without == "scale" else HYPER.d_k**-0.5)
    assert (float(after[0]["||dL/db_K||"]) > 1e-9) == (without == "softmax")
    assert [one.keys() for one in before] == [one.keys() for one in after]


def asked(folder: Path, *words: str) -> int:
    return main(["explain", str(folder), *words])


def test_the_page_shows_each_step(folder: Path, seen: Explained, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(folder, SENTENCE, f"--target={TARGET}", "--without=mask", "--layer=2", "--head=3", "--token=2") == 0
    said = capsys.readouterr()
    headings = re.findall(r"^(.+)\n─+$", said.out, re.MULTILINE)
    assert headings[:2] == ["Without mask", "Tokens, embeddings, positions"]
    assert [line[:2] for line in headings[-6:]] == [f"{n}." for n in range(1, 7)]
    assert {*explain.TITLES.values(), "Logits: what comes next", "The search"} <= {*headings}
    numbers = [f"{value:.3f}" for value in seen.attention["encoder", 2].weights[0, 2, 1].tolist()]
    table = said.out[said.out.index(f"“{seen.source[1]}” asks, head 3 of 3") :].split("\n")[5:]
    assert [line.split()[8] for line in table[: len(numbers)]] == numbers
    assert "nats a token, without smoothing.\n" in said.out
    assert f"{seen.loss:.4f}" in said.out
    assert f"“{seen.found}”" in " ".join(said.out.split())
    assert "never stood in the generated text" in said.err


def test_one_page_for_the_browser_needs_nothing_else(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert asked(folder, "the <b>red</b> & cats", f"--html={page}") == 0
    text = page.read_text("utf-8")
    assert capsys.readouterr().out.startswith(f"{page}: ")
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "Content-Security-Policy" in text
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert text.count("<section") == 7


def test_what_cannot_be_explained_is_refused(
    folder: Path, trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        (("",), "expected a sentence; what was typed is empty"),
        (("the cat " * 30,), f"expected a sentence of at most {LONGEST} tokens, got "),
        (("sees", "--layer=3"), "--layer: expected a number from 1 to 2, got 3."),
        (("sees", "--head=0"), "--head: expected a number from 1 to 3, got 0."),
        (("sees", "--token=0"), "--token: expected a number from 1 to"),
    ):
        assert asked(folder, *words) == 2
        shown = capsys.readouterr()
        assert (said in shown.err, shown.out) == (True, "")
    system = "repro.model.rivals.convs2s.ConvS2S"
    assert asked(kept_run(tmp_path / "run", system=system), "sees") == 2
    assert f"got row 'h=1' of table3_A, a {system}, whose steps are others" in capsys.readouterr().err
    line = "old " * LONGEST
    while len(trained.tokenizer.encode([line])[0]) - 1 > LONGEST:
        line = line.removesuffix("old ")
    assert len(ids_of(trained.tokenizer, line)) - 1 == LONGEST, "so many are explained"
