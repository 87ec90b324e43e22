"""Measurements of trained weights, each kept in a file that outlasts the checkpoints, and two pictures of them.

Activations: mean and variance before and after training, with norms and without. The first weights are drawn from the
run's seed, the last come from its checkpoints. Paper: section 3.1.

Gradients: the loss of the first target token is differentiated with respect to the embedding of each source token. If
only the last state of a recurrent encoder reaches the decoder, early words reach it through all steps after them. Cho
et al. (2014), section 1.

    B sentences    S source tokens    T tokens    D d_model
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.batch import Batch, make_batch
from repro.data.shards import Encoded
from repro.data.tokenizer import Tokenizer
from repro.figures import style
from repro.figures.style import Axes, Drawn
from repro.model.config import Hyper
from repro.model.protocol import TranslationSystem
from repro.model.special_tokens import PAD
from repro.model.transformer import Transformer
from repro.results.record import BASE, Record
from repro.runs.load import open_run, system_of
from repro.runs.outputs import at_hand
from repro.storage import signed_json
from repro.storage.atomic import write_bytes

Array = NDArray[np.float64]
FORMAT = 1
N_SENTENCES = 64  # the first of dev, for activations
STACKS = {"encoder": ("self-attention", "feed-forward"), "decoder": ("self-attention", "source", "feed-forward")}
WHEN = {"first": "first step", "last": "last step"}
FEWEST, MOST = 32, 256  # sentences of one length, for gradients

Moments = dict[str, list[tuple[float, float]]]  # by stack: mean and variance of the embedding and after each sub-layer


# ---- measuring


class Probe(NamedTuple):
    """Something that is measured of checkpoints."""

    name: str  # of its file
    command: str  # which trains the runs
    measure: Callable[[Sequence[Record], Path, Path], Any]  # of records, their runs and the cache
    draw: Callable[[Any], Drawn]  # of what was measured
    rows: tuple[tuple[str, str], ...]  # table and row of each run


def runs_of_rows(wanted: Sequence[tuple[str, str]], of: Callable[[str], Sequence[Record]], runs: Path) -> list[Record]:
    """For each row a finished run whose folder is in `runs`; an empty list if a row has none.

    For the first row it is the run of the lowest seed. For the others it is that of the same seed, if there is one;
    they must have read the same text in the same tokens. Runs of uncommitted code are not compared, but one may be
    shown by itself.
    """
    found: list[Record] = []
    for table, row in wanted:
        fitting = [
            record
            for record in of(table)
            if record.row == row
            and record.status == "finished"
            and not (record.stamp["dirty"] and len(wanted) > 1)
            and (runs / record.run / "record.json").is_file()
            and all((record.corpus, record.tokenizer) == (other.corpus, other.tokenizer) for other in found[:1])
        ]
        if not fitting:
            return []
        found.append(min(fitting, key=lambda record: (bool(found) and record.seed != found[0].seed, record.seed)))
    return found


def dev_pairs(record: Record, cache: Path) -> list[tuple[str, str]]:
    """The lines of dev on which a run was scored. Raises ValueError where they are not available."""
    if (corpus := at_hand(record, cache)) is None:
        name = record.corpus["name"]
        raise ValueError(
            f"expected the text of run {record.run}, {name} {record.pair}, in {cache}, found none. Give the "
            f"--cache-dir of that run, or run {record.table} again."
        )
    return list(corpus.dev.pairs())


def sides_of(pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> tuple[Encoded, Encoded]:
    """Sources and targets as ids, each with its end symbol."""
    source, target = (Encoded(*tokenizer.encode(list(side))) for side in zip(*pairs, strict=True))
    return source, target


def measured(to: Path, probe: Probe, records: Sequence[Record], runs: Path, cache: Path, *, scale: str) -> Any:
    """The measurement of the records' runs, or else the one in `to`. Raises ValueError that names the command to run.

    It is measured once, and again for other runs. It names its `run`, or each of its `runs`, as `whose` does.
    """
    file, command = to / f"{probe.name}.json", f"{probe.command} --scale {scale}"
    advice = f"Restore it from git, or delete it and run `{command}`."
    kept = signed_json.read(file, "a measurement", FORMAT, advice) if file.exists() else None
    ids = [record.run for record in records]
    if ids and (kept is None or [one["run"] for one in kept.get("runs", [kept])] != ids):
        kept = {"format": FORMAT, **probe.measure(records, runs, cache)}
        write_bytes(file, signed_json.signed(kept))
    if kept is None:
        raise ValueError(f"no {file}, and no finished run with its checkpoints to make it from. Run `{command}`.")
    return kept


def told_runs(runs: Sequence[Mapping[str, Any]]) -> str:
    """The runs behind the numbers, for a caption."""
    each = "; ".join(f"{one['row']} seed {one['seed']}, run {one['run']}, commit {one['commit'][:12]}" for one in runs)
    return f"Scale {runs[0]['scale']}, corpus {runs[0]['corpus']} {runs[0]['pair']}: {each}."


def whose(record: Record) -> dict[str, Any]:
    """The facts about a run that are stored with a measurement."""
    return {
        "row": record.row,
        "seed": record.seed,
        "scale": record.scale,
        "corpus": record.corpus["name"],
        "pair": record.pair,
        "run": record.run,
        "commit": record.stamp["commit"] or "none",
    }


# ---- activations


def moments(model: Transformer, batch: Batch) -> Moments:
    """Both moments over all elements of all tokens of a padded batch, without padding; dropout is off.

    They are of each stack's input and of the output of its sub-layers, [B, T, D] each. The model is changed for good.
    """
    kept: dict[str, list[Tensor]] = {stack: [] for stack in STACKS}

    def noted(around: Any, of: list[Tensor], x: Tensor, *others: Any) -> Tensor:
        if not of:
            of.append(x)
        of.append(around(x, *others))
        return of[-1]

    for stack, of in kept.items():
        for layer in getattr(model, stack):
            layer.around = partial(noted, layer.around, of)
    assert isinstance(batch.source, torch.Tensor)
    assert isinstance(batch.target, torch.Tensor)
    real = {"encoder": batch.source != PAD, "decoder": batch.target != PAD}
    with torch.inference_mode():
        model.eval()(batch.source, batch.decoder_in)
    found: Moments = {}
    for stack, stream in kept.items():
        values = [x[real[stack]].double() for x in stream]
        found[stack] = [(x.mean().item(), x.var(correction=0).item()) for x in values]
    return found


def measure_activations(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
    """Both moments of each run, with its first and its last weights, on the same sentences of dev."""
    from repro.training.module import TranslationModule  # it imports Lightning, which no other figure needs

    pairs = dev_pairs(records[0], cache)[:N_SENTENCES]
    found = []
    for record in records:
        trained = open_run(runs / record.run)
        source, target = sides_of(pairs, trained.tokenizer)
        batch = make_batch(source, target, np.arange(len(pairs)), n_update=int(target.lengths.sum()))
        with torch.random.fork_rng(devices=[]):  # the module draws its weights from the seed
            system = system_of(trained.record)
            drawn = TranslationModule(Hyper(**record.hyper), trained.tokenizer.size, record.seed, system).model
        assert isinstance(drawn, Transformer), "the rows are, but for what stands around a sub-layer"
        assert isinstance(trained.model, Transformer)
        found.append({"first": moments(drawn, batch), "last": moments(trained.model, batch)})
    return {"runs": [*map(whose, records)], "sentences": len(pairs), "moments": found}


def draw_activations(measured: Mapping[str, Any]) -> Drawn:
    """The encoder above, the decoder below; mean left, variance right."""
    figure = style.figure("activations", 5.0)
    panels = figure.subplots(2, 2, sharey="col")
    for (left, right), stack in zip(panels, STACKS, strict=True):
        for moment, axes in enumerate((left, right)):
            for i, (run, of) in enumerate(zip(measured["runs"], measured["moments"], strict=True)):
                for when, said in WHEN.items():
                    values = [pair[moment] for pair in of[when][stack]]
                    axes.plot(
                        values, color=style.COLOURS[i + 1], marker=style.MARKERS[i], ms=3.6,
                        ls=style.DASHES[2 if when == "first" else 0], mfc="white" if when == "first" else None,
                        label=f"{run['row']}, {said}",
                    )  # fmt: skip
            axes.set_title(f"{stack}: {('mean', 'variance')[moment]}")
            _name_layers(axes, stack, len(measured["moments"][0]["last"][stack]))
        right.set_yscale("log")
    names = panels[0][0].get_legend_handles_labels()
    figure.legend(*names, loc="lower center", ncols=4, handlelength=3, bbox_to_anchor=(0.5, 0.115))
    style.note(
        figure,
        "Over all elements of what flows on after each sub-layer (residual sum, and norm where there is one), of the "
        f"tokens of {measured['sentences']} sentences of dev with their references; dropout is off. Points: the "
        "embedding, then of each layer self-attention, in the decoder attention to the source, feed-forward. First "
        f"step: the weights that the seed draws; last: those that are scored. {told_runs(measured['runs'])}",
    )
    figure.tight_layout(rect=(0, 0.17, 1, 1), w_pad=2)
    return [figure]


def _name_layers(axes: Axes, stack: str, n: int) -> None:
    """Label the layers below the middle of their sub-layers, with lines between layers."""
    parts = len(STACKS[stack])
    n_layers = n // parts
    axes.set_xticks(
        [0, *(1 + layer * parts + (parts - 1) / 2 for layer in range(n_layers))],
        ["in", *(f"layer {layer + 1}" if n_layers <= 3 else str(layer + 1) for layer in range(n_layers))],
    )
    axes.tick_params(axis="x", length=0)
    for layer in range(n_layers):
        axes.axvline(0.5 + layer * parts, color=style.PALE, lw=0.7, zorder=0)
    axes.grid(True, axis="y")


ACTIVATIONS = Probe(
    "activations",
    'python experiments/lab_parts.py --rows base "no norm"',
    measure_activations,
    draw_activations,
    ((BASE, BASE), ("lab_parts", "no norm")),
)


# ---- gradients


def gradient_norms(model: TranslationSystem, source: Tensor, first: Tensor) -> Tensor:
    """int64 source [B, S] without padding and the first target token [B] -> float [B, S].

    The gradient of the loss -log p(first | source) with respect to the embedding of each source token, as its norm over
    D. The loss is not smoothed, dropout is off.
    """
    model.eval()
    read: list[Tensor] = []
    handle = model.embedding.register_forward_hook(lambda module, inputs, made: read.append(made))
    memory = model.encode(source)
    handle.remove()
    [embedded] = read  # the source is embedded once
    hidden = model.decode(source.new_full((len(source), 1), PAD), memory, source)[:, 0]
    log_p = model.embedding.logits(hidden).log_softmax(-1)
    # no sentence's loss depends on another sentence, so the gradient of their sum is each one's own
    [gradient] = torch.autograd.grad(-log_p.gather(1, first[:, None]).sum(), embedded)
    return gradient.norm(dim=-1)


def length_shown(lengths: Iterable[int]) -> int:
    """The greatest length that at least `FEWEST` sentences have; else the most frequent one, the longer if tied."""
    counts = Counter(lengths)
    many = [length for length, n in counts.items() if n >= FEWEST]
    return max(many) if many else max(counts, key=lambda length: (counts[length], length))


def measure_gradients(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
    """The norms of each run on the same sentences of dev, all of one length, in float64: [runs, B, S]."""
    pairs, norms = dev_pairs(records[0], cache), []
    for record in records:
        trained = open_run(runs / record.run)
        source, target = sides_of(pairs, trained.tokenizer)
        length = length_shown(source.lengths.tolist())
        chosen = np.flatnonzero(source.lengths == length)[:MOST].tolist()
        ids = torch.tensor([[int(id) for id in source.sentence(i)] for i in chosen])
        first = torch.tensor([int(target.sentence(i)[0]) for i in chosen])
        assert isinstance(trained.model, torch.nn.Module)
        trained.model.double()
        norms.append(gradient_norms(trained.model, ids, first).tolist())
    return {"runs": [*map(whose, records)], "norms": norms}


def draw_gradients(measured: Mapping[str, Any]) -> Drawn:
    """One line per system with its quartiles: norms left, shares right."""
    norms, figure = np.array(measured["norms"]), style.figure("source_gradients", 3.75)  # [runs, B, S]
    left, right = figure.subplots(1, 2)
    n, length = norms.shape[1:]
    for i, (run, of) in enumerate(zip(measured["runs"], norms, strict=True)):
        for axes, values in ((left, of), (right, of / of.sum(1, keepdims=True))):
            low, median, high = np.percentile(values, (25, 50, 75), axis=0)
            places, colour = np.arange(1, length + 1), style.COLOURS[i + 1]
            axes.fill_between(places, low, high, color=colour, alpha=0.16, lw=0)
            how: dict[str, Any] = {"ls": style.DASHES[i], "marker": style.MARKERS[i], "ms": 3.6, "label": run["row"]}
            axes.plot(places, median, color=colour, **how)
    right.axhline(1 / length, color=style.SOFT, lw=0.8, ls=style.DASHES[2], zorder=1)
    for axes, title in ((left, "norm of the gradient"), (right, "share of the sentence’s sum")):
        axes.set(title=title, xlabel="position in the source (tokens)", yscale="log", xlim=(0.5, length + 0.5))
        axes.set_xticks(range(1, length + 1, 1 + length // 16))
        axes.grid(True, axis="y")
    names = left.get_legend_handles_labels()
    figure.legend(*names, loc="lower center", ncols=3, handlelength=3, bbox_to_anchor=(0.5, 0.165))
    style.note(
        figure,
        "Of the loss of the first target token with regard to the embedding of each source token, the last of which is "
        f"the end symbol: {n} sentence{'s' * (n != 1)} of dev with {length} tokens each. Lines: medians over "
        f"sentences; bands: quartiles; dotted: an even share. No label smoothing, no dropout. "
        f"{told_runs(measured['runs'])}",
    )
    figure.tight_layout(rect=(0, 0.235, 1, 1), w_pad=2)
    return [figure]


GRADIENTS = Probe(
    "source_gradients",
    'python experiments/ladder.py --rows base simple "soft alignment"',
    measure_gradients,
    draw_gradients,
    (("ladder", "simple"), ("ladder", "soft alignment"), (BASE, BASE)),
)
