"""Mean and variance of activations between sub-layers, before and after training, with and without norms.

The first weights are drawn from the run's seed, the last come from its checkpoints. Paper: section 3.1.

    B sentences    T tokens    D d_model
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.figures import style
from repro.figures.checkpoints import Wanted, dev_pairs, sides_of, told_runs, whose
from repro.figures.style import Axes, Figure, save_numbers
from repro.results.record import BASE, Record

if TYPE_CHECKING:
    from torch import Tensor

    from repro.data.batch import Batch
    from repro.model.transformer import Transformer

NAME, MEASURED = "activations", "activations.json"
ROWS = (Wanted(BASE, BASE), Wanted("lab_parts", "no norm"))
COMMAND = 'python experiments/lab_parts.py --rows base "no norm"'
N_SENTENCES = 64  # the first of dev
STACKS = {"encoder": ("self-attention", "feed-forward"), "decoder": ("self-attention", "source", "feed-forward")}
WHEN = {"first": "first step", "last": "last step"}

Moments = dict[str, list[tuple[float, float]]]  # by stack: mean and variance of the embedding and after each sub-layer


# ---- measuring


@contextmanager
def watched_stream(model: "Transformer") -> "Iterator[dict[str, list[Tensor]]]":
    """Collect, while the context lasts, each stack's input and the output of its sub-layers, [B, T, D] each."""
    kept: dict[str, list[Tensor]] = {stack: [] for stack in STACKS}
    layers: list[tuple[Any, Any, list[Tensor]]] = [
        (layer, layer.around, kept[stack]) for stack in STACKS for layer in getattr(model, stack)
    ]

    def noted(around: Any, of: "list[Tensor]", x: "Tensor", *others: Any) -> "Tensor":
        if not of:
            of.append(x)
        of.append(around(x, *others))
        return of[-1]

    try:
        for layer, around, of in layers:
            layer.around = partial(noted, around, of)
        yield kept
    finally:
        for layer, around, _ in layers:
            layer.around = around


def moments(model: "Transformer", batch: "Batch") -> Moments:
    """Both moments over all elements of all tokens of a padded batch, without padding; dropout is off."""
    import torch

    from repro.model.special_tokens import PAD

    assert isinstance(batch.source, torch.Tensor)
    assert isinstance(batch.target, torch.Tensor)
    real = {"encoder": batch.source != PAD, "decoder": batch.target != PAD}
    with torch.inference_mode(), watched_stream(model.eval()) as kept:
        model(batch.source, batch.decoder_in)
    found: Moments = {}
    for stack, stream in kept.items():
        values = [x[real[stack]].double() for x in stream]
        found[stack] = [(x.mean().item(), x.var(correction=0).item()) for x in values]
    return found


def measure(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
    """Both moments of each run, with its first and its last weights, on the same sentences of dev."""
    import torch

    from repro.data.batch import make_batch
    from repro.model.config import Hyper
    from repro.model.transformer import Transformer
    from repro.runs.load import open_run, system_of
    from repro.training.module import TranslationModule

    pairs = dev_pairs(records[0], cache)[:N_SENTENCES]
    found = []
    for record in records:
        trained = open_run(runs / record.run, cache)
        source, target = sides_of(pairs, trained.tokenizer)
        batch = make_batch(source, target, np.arange(len(pairs)), n_update=int(target.lengths.sum()))
        with torch.random.fork_rng(devices=[]):  # the module draws its weights from the seed
            system = system_of(trained.record)
            drawn = TranslationModule(Hyper(**record.hyper), trained.tokenizer.size, record.seed, system).model
        assert isinstance(drawn, Transformer), "the rows are, but for what stands around a sub-layer"
        assert isinstance(trained.model, Transformer)
        found.append({"first": moments(drawn, batch), "last": moments(trained.model, batch)})
    return {"runs": [*map(whose, records)], "sentences": len(pairs), "moments": found}


# ---- on paper


def places_of(stack: str, n_layers: int) -> list[str]:
    """Where the moments of a stack are taken: before the first layer, and after each sub-layer."""
    return ["embedding", *(f"layer {n + 1}, {part}" for n in range(n_layers) for part in STACKS[stack])]


def draw_activations(to: Path, measured: dict[str, Any]) -> list[Path]:
    """Draw mean and variance by sub-layer, and write the numbers."""
    rows = [
        (run["row"], run["seed"], WHEN[when], stack, number, place, *of[when][stack][number])
        for run, of in zip(measured["runs"], measured["moments"], strict=True)
        for when in WHEN
        for stack, parts in STACKS.items()
        for number, place in enumerate(places_of(stack, len(of[when][stack]) // len(parts)))
    ]
    columns = ("row", "seed", "weights of", "stack", "number", "after", "mean", "variance")
    return [
        style.save_figure(to, NAME, (style.WIDTH, 5.0), partial(paint_activations, measured=measured)),
        save_numbers(to, NAME, columns, rows),
    ]


def paint_activations(figure: Figure, measured: dict[str, Any]) -> None:
    """Paint the encoder above, the decoder below; mean left, variance right."""
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
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, handlelength=3, bbox_to_anchor=(0.5, 0.115))
    text = (
        "Over all elements of what flows on after each sub-layer (residual sum, and norm where there is one), of the "
        f"tokens of {measured['sentences']} sentences of dev with their references; dropout is off. Points: the "
        "embedding, then of each layer "
        "self-attention, in the decoder attention to the source, feed-forward. First step: the weights that the seed "
        f"draws; last: those that are scored. {told_runs(measured)}"
    )
    style.note(figure, "\n".join(textwrap.wrap(text, 132, break_on_hyphens=False)))
    figure.tight_layout(rect=(0, 0.17, 1, 1), w_pad=2)


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
