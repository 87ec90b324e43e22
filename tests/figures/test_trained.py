"""What is measured of trained weights, of which runs and when: against layers called by hand and finite differences."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from figures.conftest import assert_words_stand_apart
from torch import Tensor

from repro.data.batch import make_batch
from repro.data.shards import Encoded
from repro.figures import heads, trained
from repro.figures.trained import ACTIVATIONS, GRADIENTS, STACKS, Probe, measured, moments, runs_of_rows, whose
from repro.model.ablations.norms import NoNorm
from repro.model.build import build
from repro.model.config import Hyper
from repro.model.masks import Padded
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.recurrent import Simple
from repro.model.special_tokens import PAD
from repro.model.transformer import Transformer
from repro.results.places import experiment_files
from repro.results.record import Record
from repro.runs.load import Trained, experiment
from repro.training.module import TranslationModule

IDS = {
    "one": [5, 6, 7, 2],
    "two": [8, 2],
    "three": [4, 9, 2],
    "eins": [3, 2],
    "zwei": [4, 5, 6, 7, 2],
    "drei": [9, 8, 2],
}
SENTENCES, TARGETS = [*IDS.values()][:3], [*IDS.values()][3:]
WHOSE = {"seed": 4, "scale": "laptop", "corpus": "grammar", "pair": "en-de", "run": "ab" * 8, "commit": "12" * 20}


def side(sentences: list[list[int]]) -> Encoded:
    return Encoded(np.array([id for one in sentences for id in one], np.uint16), np.cumsum([0, *map(len, sentences)]))


@pytest.fixture
def run_of(a_record: Callable[..., Record], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Record]:
    """A run of a model, whose dev text is some of the sentences above."""

    def make(model: Any, hyper: Hyper, pairs: list[tuple[str, str]]) -> Record:
        record = replace(a_record("base", 7), hyper=vars(hyper))
        sides = lambda pairs, of: [side([IDS[word] for word in words]) for words in zip(*pairs, strict=True)]  # noqa: E731
        monkeypatch.setattr(trained, "dev_pairs", lambda record, cache: pairs)
        monkeypatch.setattr(trained, "sides_of", sides)
        opened = Trained(record=record, model=model, tokenizer=type("Tokens", (), {"size": 11}))  # type: ignore[arg-type]
        monkeypatch.setattr(trained, "open_run", lambda folder: opened)
        return record

    return make


def measurement(probe: Probe, **of: Any) -> dict[str, Any]:
    return {"runs": [{**WHOSE, "row": row} for _, row in probe.rows], **of}


# ---- activations

HYPER = Hyper(n_layers=2, d_model=14, d_ff=10, n_heads=2, d_k=3, d_v=5, dropout=0.4)


def batch() -> Any:
    return make_batch(side(SENTENCES), side(TARGETS), range(3), n_update=10)


def stream_by_hand(model: Transformer, source: Tensor, decoder_in: Tensor) -> dict[str, list[Tensor]]:
    """Sub-layer after sub-layer, for post-norm and for none (whose norm is the identity)."""
    bias, causal = (
        Padded(source).seen_from(Padded(decoder_in), torch.float64),
        Padded(decoder_in).causal(torch.float64),
    )
    x = model.embedding(source) + model.source_positions(0, source.shape[1])
    encoder = [x]
    for layer in model.encoder:
        for norm, sub_layer in zip(
            layer.norms, (lambda x, of=layer: of.self_attention(x, bias), layer.feed_forward), strict=True
        ):
            x = norm(x + sub_layer(x))
            encoder.append(x)
    memory, x = x, model.embedding(decoder_in) + model.target_positions(0, decoder_in.shape[1])
    decoder = [x]
    for layer in model.decoder:
        attentions = (
            lambda x, of=layer: of.self_attention(x, causal),
            lambda x, of=layer: of.cross_attention(x, memory, bias),
            layer.feed_forward,
        )
        for norm, sub_layer in zip(layer.norms, attentions, strict=True):
            x = norm(x + sub_layer(x))
            decoder.append(x)
    return {"encoder": encoder, "decoder": decoder}


@pytest.mark.parametrize("system", [None, partial(Transformer, around=NoNorm)], ids=["post-norm", "no norm"])
def test_each_moment_is_that_of_the_tokens_after_a_sub_layer(system: Any) -> None:
    torch.manual_seed(3)
    model, read = build(system, HYPER, 11).double(), batch()
    for norm in (part for part in model.modules() if isinstance(part, torch.nn.LayerNorm)):
        torch.nn.init.uniform_(norm.weight, 0.5, 3)  # else each has variance 1
        torch.nn.init.normal_(norm.bias)
    found = moments(model, read)
    with torch.no_grad():
        expected = stream_by_hand(model.eval(), read.source, read.decoder_in)
    for stack, sentences in (("encoder", SENTENCES), ("decoder", TARGETS)):
        assert len(found[stack]) == len(expected[stack]) == 1 + HYPER.n_layers * len(STACKS[stack])
        for (mean, variance), x in zip(found[stack], expected[stack], strict=True):
            values = np.concatenate([x[i, : len(one)].numpy().ravel() for i, one in enumerate(sentences)])
            assert (mean, variance) == (pytest.approx(values.mean(), abs=1e-12), pytest.approx(values.var()))


def test_first_are_the_weights_that_the_seed_draws_and_last_those_of_the_run(
    run_of: Callable[..., Record], tmp_path: Path
) -> None:
    torch.manual_seed(5)
    last = build(None, HYPER, 11).eval()
    record = run_of(last, HYPER, [("one", "eins"), ("two", "zwei")])
    before = torch.random.get_rng_state()
    found = trained.measure_activations([record], tmp_path, tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    read = make_batch(side(SENTENCES[:2]), side(TARGETS[:2]), range(2), n_update=7)
    first = TranslationModule(HYPER, 11, 7).model
    assert found.pop("runs")[0]["run"] == record.run
    assert found == {"sentences": 2, "moments": [{"first": moments(first, read), "last": moments(last, read)}]}
    assert found["moments"][0]["first"] != found["moments"][0]["last"]


@pytest.mark.parametrize("n_layers", [3, 6])
def test_a_line_is_a_row_at_a_step_and_no_two_labels_touch(n_layers: int) -> None:
    random = np.random.default_rng(7)
    some = [
        {when: {stack: random.uniform(0.1, 9, (1 + n_layers * len(STACKS[stack]), 2)).tolist() for stack in STACKS}
         for when in ("first", "last")}
        for _ in ACTIVATIONS.rows
    ]  # fmt: skip
    content = measurement(ACTIVATIONS, sentences=64, moments=some)
    [figure] = trained.draw_activations(content)
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[3].get_lines() if "," in line.get_label()}
    assert [*lines] == ["base, first step", "base, last step", "no norm, first step", "no norm, last step"]
    np.testing.assert_allclose(lines["no norm, first step"], np.array(some[1]["first"]["decoder"])[:, 1])
    texts = [text for axes in figure.axes for text in (*axes.get_xticklabels(), axes.title)]
    words = [*texts, *figure.legends[0].get_texts(), *figure.texts]
    assert assert_words_stand_apart(figure, words) == 4 * (n_layers + 2) + 4 + 1


# ---- gradients

SMALL = Hyper(n_layers=1, d_model=6, d_ff=200, n_heads=2, d_k=3, d_v=3, dropout=0.4)
SOURCE, FIRST = torch.tensor([[5, 6, 7, 2], [8, 9, 8, 2]]), torch.tensor([3, 4])


def loss_with(model: Any, source: Tensor, first: int, place: int, change: Tensor) -> float:
    """-log p(first | source), where `change` [D] is added to the embedding of one source token."""

    def shifted(module: Any, inputs: tuple[Tensor], made: Tensor) -> Tensor:
        return made + torch.eye(made.shape[1], dtype=made.dtype)[place, :, None] * change

    with torch.no_grad():
        handle = model.embedding.register_forward_hook(shifted)
        memory = model.encode(source[None])
        handle.remove()
        hidden = model.decode(torch.full((1, 1), PAD), memory, source[None])
        return -float(model.embedding.logits(hidden)[0, 0].log_softmax(-1)[first])


@pytest.mark.parametrize("system", [None, SoftAlignment])
def test_a_gradient_is_what_a_small_change_of_the_embedding_does_to_the_loss(system: Any) -> None:
    torch.manual_seed(3)
    model = build(system, SMALL, 11).double()
    found = trained.gradient_norms(model, SOURCE, FIRST)
    assert found.shape == SOURCE.shape
    small = 1e-5 * torch.eye(SMALL.d_model, dtype=torch.float64)
    for i, place in np.ndindex(*SOURCE.shape):
        both = [[loss_with(model, SOURCE[i], int(FIRST[i]), place, sign * way) for way in small] for sign in (1, -1)]
        assert found[i, place].item() == pytest.approx(np.linalg.norm(np.subtract(*both) / 2e-5), rel=1e-6)


def test_the_greatest_length_that_many_have() -> None:
    assert trained.length_shown([*[5] * 40, *[9] * 32, *[12] * 31]) == 9
    assert trained.length_shown([5, 5, 9, 9, 12]) == 9


def test_sentences_of_one_length_and_the_first_token_of_their_references(
    run_of: Callable[..., Record], tmp_path: Path
) -> None:
    torch.manual_seed(5)
    model: Any = build(Simple, SMALL, 11)
    record = run_of(model, SMALL, [("three", "eins"), ("two", "drei"), ("drei", "zwei")])
    [norms] = trained.measure_gradients([record], tmp_path, tmp_path)["norms"]
    of = torch.tensor([IDS["three"], IDS["drei"]])
    np.testing.assert_allclose(norms, trained.gradient_norms(model.double(), of, torch.tensor([3, 4])), rtol=1e-12)


def test_a_line_is_the_median_and_no_two_labels_touch() -> None:
    norms = np.random.default_rng(7).uniform(1e-6, 1e-2, (len(GRADIENTS.rows), 33, 55))
    content = measurement(GRADIENTS, norms=norms.tolist())
    [figure] = trained.draw_gradients(content)
    left, right = figure.axes
    for axes, values in ((left, norms[2]), (right, norms[2] / norms[2].sum(1)[:, None])):
        [line] = [line for line in axes.get_lines() if line.get_label() == "base"]
        np.testing.assert_allclose(line.get_ydata(), np.median(values, axis=0))
        [low, high] = np.percentile(values[:, 4], (25, 75))  # the band of the base, the last, at the fifth position
        band = axes.collections[2].get_paths()[0].vertices
        assert sorted({*band[band[:, 0] == 5, 1]}) == pytest.approx([low, high])
        assert axes.get_yscale() == "log"
    texts = [text for axes in figure.axes for text in (*axes.get_xticklabels(), axes.title, axes.xaxis.label)]
    assert_words_stand_apart(figure, [*texts, *figure.legends[0].get_texts(), *figure.texts])


# ---- which runs are measured, when, and what is said where they are gone

Make = Callable[..., Record]
ROWS = ("ladder", "simple"), ("base", "base")


def place(runs: Path, record: Record) -> Record:
    """The folder of a finished run."""
    (runs / record.run).mkdir(exist_ok=True)
    (runs / record.run / "record.json").touch()
    return record


def chosen(records: list[Record], runs: Path) -> list[int]:
    """Numbers of the runs of both rows, by their places in `records`."""
    found = runs_of_rows(ROWS, lambda table: [one for one in records if one.table == table], runs)
    return [next(i for i, one in enumerate(records) if one is run) for run in found]


def test_the_lowest_seed_whose_checkpoints_are_here_and_a_base_of_the_same_text(a_record: Make, tmp_path: Path) -> None:
    def simple(seed: int, row: str = "simple", **other: Any) -> Record:
        return a_record(row, seed, table="ladder", run=f"{seed + 100:016x}", **other)

    elsewhere = {**a_record().tokenizer, "sha256": "0" * 64}
    records = [
        simple(5),
        simple(4),
        simple(3),  # whose folder is gone
        simple(2, dirty=True),
        simple(1, status="diverged"),
        simple(0, "simple, source reversed"),
        a_record("base", 4, tokenizer=elsewhere),
        a_record("base", 6),
        a_record("base", 7),
    ]
    for record in records:
        if record is not records[2]:
            place(tmp_path, record)
    assert chosen(records, tmp_path) == [1, 7]
    records.append(place(tmp_path, a_record("base", 4, run="f" * 16)))
    assert chosen(records, tmp_path) == [1, 9]  # of the same seed
    records.insert(0, place(tmp_path, a_record("base", 3, run="e" * 16)))
    assert chosen(records, tmp_path) == [2, 10]  # though that of 3 is lower
    assert chosen(records[:1], tmp_path) == []


def test_a_run_of_uncommitted_code_is_shown_alone_and_not_compared(a_record: Make, tmp_path: Path) -> None:
    runs = {
        "base": [a_record("base", 2), a_record("base", 1, dirty=True)],
        "ladder": [a_record("simple", 1, table="ladder")],
    }
    for record in (*runs["base"], *runs["ladder"]):
        place(tmp_path, record)
    assert runs_of_rows(ROWS[1:], runs.__getitem__, tmp_path) == runs["base"][1:]
    assert runs_of_rows(ROWS, runs.__getitem__, tmp_path) == [*runs["ladder"], runs["base"][0]]


def test_runs_are_measured_once_and_others_anew(a_record: Make, tmp_path: Path) -> None:
    file, seen = tmp_path / "numbers.json", []

    def measure(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
        assert (runs, cache) == (tmp_path / "runs", tmp_path / "cache")
        seen.append([one.seed for one in records])
        return {"runs": [*map(whose, records)], "numbers": [0.5] * len(seen)}

    def kept(records: list[Record]) -> Any:
        probe = Probe("numbers", "make it", measure, list, ())
        return measured(tmp_path, probe, records, tmp_path / "runs", tmp_path / "cache", scale="laptop")

    with pytest.raises(ValueError, match=r"no .*numbers.json, and no finished run .* Run `make it --scale laptop`\."):
        kept([])
    first, second = [a_record("base", 1)], [a_record("base", 2)]
    for records, times in ((first, 1), (first, 1), (second, 2), ([], 2)):
        found = kept(records)
        assert found["numbers"] == [0.5] * times
    assert seen == [[1], [2]]
    assert trained.told_runs(found["runs"]).endswith(f": base seed 2, run {second[0].run}, commit 121212121212.")
    text = file.read_text("utf-8")
    for damaged, said in (
        (text.replace("0.5", "0.6"), "edited by hand"),
        (text.replace('"format": 1', '"format": 7'), "expected a measurement of format 1, got 7"),
        (text[:100], ""),
        ("[]", "expected a measurement of format 1, got"),
    ):
        file.write_text(damaged, "utf-8")
        with pytest.raises(ValueError, match=rf"numbers.json: {said}.* delete it and run `make it --scale laptop`"):
            kept(second)


def test_a_measurement_of_one_run_is_kept_as_well(a_record: Make, tmp_path: Path) -> None:
    first, second = (a_record("base", seed) for seed in (1, 2))
    probe = Probe("one", "make it", lambda of, runs, cache: {"run": of[0].run, "seed": of[0].seed}, list, ())
    for records, seed in (([first], 1), ([first], 1), ([], 1), ([second], 2)):
        found = measured(tmp_path, probe, records, tmp_path, tmp_path, scale="laptop")
        assert found["seed"] == seed


def test_text_that_is_not_here_is_named(a_record: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trained, "at_hand", lambda record, cache: None)
    with pytest.raises(ValueError, match=r"text of run 0{15}1, grammar en-de, in .* Give the --cache-dir"):
        trained.dev_pairs(a_record(), tmp_path)


def test_rows_that_are_measured_stand_in_their_experiment() -> None:
    rows = {row.name for row in experiment(experiment_files() / "ladder.py")["ROWS"]}
    wanted = (*trained.GRADIENTS.rows, (heads.TABLE, heads.ROW))
    of_table = {row for table, row in wanted if table == "ladder"}
    assert len(of_table) == 2
    assert of_table <= rows
