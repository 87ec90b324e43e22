"""A finished run, opened and put to use: lines in, translations, trees, scores and attention out.

It left a model with the averaged weights, and its tokenizer. Commands use it, and programs.

Letters: H heads, Q queries (tokens that look), K keys (tokens that are looked at).
"""

import hashlib
import json
import math
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.data.treebank import Mended, mended
from repro.decoding.search import Search
from repro.model.config import Hyper
from repro.model.special_tokens import EOS, PAD, SPECIAL
from repro.results import record
from repro.results.places import EXPERIMENTS, experiment_files
from repro.results.provenance import system_text
from repro.results.record import Record
from repro.runs.refused import as_ids, n_places, refuse_long
from repro.tracking.run_folder import RECORD

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import float32
    from numpy.typing import NDArray
    from pandas import DataFrame
    from torch import Tensor

    from repro.data.tokenizer import Tokenizer
    from repro.model.protocol import TranslationSystem

TOKENIZER = "tokenizer.json"  # in the folder of a run
ORIGIN = "run.json"  # in an exported folder: whose weights these are, and in which format
TENSORS = "model.safetensors"  # there
BUDGET = 4_096  # padded tokens of a batch that is scored
PARTS = {"encoder.self_attention": "encoder", "decoder.self_attention": "decoder", "decoder.cross_attention": "cross"}


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished run, ready to be used."""

    record: Record
    model: "TranslationSystem"  # in evaluation mode
    tokenizer: "Tokenizer"


def finished(folder: Path) -> Record:
    """The record of the run in `folder` (runs/<id>)."""
    file = folder / RECORD
    if not file.exists():
        raise ValueError(f"expected the folder of a finished run, such as runs/<id>; {folder} has no record.json.")
    return record.load(file)


def open_run(folder: Path, system: Any = None) -> Trained:
    """The run of `folder` (runs/<id>, or its export to safetensors), ready for work. A ValueError says what is missing.

    `system` is that of its row; None: the one in the experiment file.
    """
    from repro.data.tokenizer import Tokenizer
    from repro.model.build import build
    from repro.training.checkpoint import averaged

    run = finished(folder)
    if run.status == "diverged":
        raise ValueError(f"{folder}: the run diverged after step {run.cost['steps']:,}, so it has no weights to use.")
    again = f"Delete {folder} and run {run.table} with the same options again."
    hyper, file, sha256 = Hyper(**run.hyper), folder / TOKENIZER, run.tokenizer["sha256"]
    kept = _exported_tensors(folder)
    if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        why = "which is damaged" if file.exists() else "which is not there"
        raise ValueError(f"expected the run's tokenizer, with SHA-256 {sha256[:12]}, in {file}, {why}. {again}")
    tokenizer = Tokenizer.load(file)
    model = build(system_of(run, system), hyper, tokenizer.size).eval()
    weights = kept or averaged(folder / "checkpoints", run.run, hyper.averaged_steps)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{folder}: its weights do not fit the model that repro.model builds now. {again}") from error
    return Trained(record=run, model=model, tokenizer=tokenizer)


def _exported_tensors(folder: Path) -> "dict[str, Tensor] | None":
    """The weights in a folder that was exported to "safetensors"; None where the folder is no export.

    Raises ValueError for another format and for weights that are not those that were written.
    """
    origin = origin_of(folder)
    if "format" not in origin:
        return None
    if origin["format"] != "safetensors":
        raise ValueError(f"{folder} is an export to {origin['format']}, for others to open. Give the run itself.")
    contents = (folder / TENSORS).read_bytes()
    if hashlib.sha256(contents).hexdigest() != origin.get("weights"):
        raise ValueError(f"{folder / TENSORS} has changed since it was exported. Export the run again.")
    import safetensors.torch

    return safetensors.torch.load(contents)


def origin_of(folder: Path) -> dict[str, Any]:
    """What an exported folder says of itself; empty where nothing can be read."""
    try:
        origin = json.loads((folder / ORIGIN).read_bytes())
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def system_of(run: Record, given: Any = None) -> Any:
    """The system of a run: the one that is `given`, or that of its row in the experiment file; None: the Transformer.

    The file is found by the table's name alone, in the folder `experiments` here or of this code, and is executed: a
    record names its row, never the place of code. Raises ValueError where there is none, or another system.
    """
    system, file = given, "its file"
    if given is None and run.system is not None:
        places = [folder / f"{run.table}.py" for folder in (EXPERIMENTS, experiment_files())]
        if (found := next((place for place in places if place.is_file()), None)) is None:
            raise ValueError(
                f"Run {run.run} is a {run.system} of {run.table}, of which there is no file in the folder experiments. "
                f"Type the command where it is; for a row of a program, repro.load({run.run!r}, system=...)."
            )
        file, rows = str(found), experiment(found).get("ROWS", [])
        system = next((row.system for row in rows if row.name == run.row), None)
    if (now := system_text(system)) != (run.system or ""):
        raise ValueError(
            f"Run {run.run} is a {run.system or 'Transformer'}, and row {run.row!r} of {file} is "
            f"{now or 'the Transformer or gone'}. Give the system of its row, or run it again."
        )
    return system


def experiment(file: Path) -> dict[str, Any]:
    """What an experiment file defines, by name. It is executed, without making runs, and can import its neighbours."""
    sys.path.append(str(file.parent))
    try:
        return runpy.run_path(str(file), run_name=file.stem)
    finally:
        sys.path.remove(str(file.parent))


# Put to use --------------------------------------------------------------------------------------


def check_translates(run: Record) -> None:
    """Raise ValueError for a run that parses."""
    if "f1" in run.about["scores"]:
        raise ValueError(f"expected a run that translates, got one that parses, of {run.table}. Use repro parse.")


def check_parses(run: Record) -> None:
    """Raise ValueError for a run that translates."""
    if "f1" not in run.about["scores"]:
        raise ValueError(f"expected a run that parses, of experiments/table4.py, got one of {run.table}, {run.pair}.")


def outputs(
    trained: Trained, lines: Sequence[str], search: Search, *, backend: Any = "torch", bf16: bool = False
) -> Iterator[tuple[str, str]]:
    """Each line with the run's output for it; an empty line has an empty output.

    Raises ValueError for a line that is too long.
    """
    from repro.decoding.backend import opened

    numbers = [number for number, line in enumerate(lines, 1) if line]
    source = as_ids(trained.tokenizer, [line for line in lines if line])
    if (most := n_places(trained.model, backend)) is not None:
        refuse_long(source, max(0, most - search.extra), "line", numbers)
    with opened(backend, trained.model, bf16=bf16) as ready:
        ids = ready.translate(source, search)
    texts = map(trained.tokenizer.decode, ids)
    return ((line, next(texts) if line else "") for line in lines)


def trees(
    trained: Trained, sentences: Sequence[Sequence[str]], search: Search, *, backend: Any = "torch", bf16: bool = False
) -> Iterator[Mended | None]:
    """The tree of each sentence, given by its words, and what was mended in it; None for an empty sentence.

    Brackets among the words are spelled as treebanks spell them, since in a tree they mean something else.
    """
    lines = [" ".join(words).replace("(", "-LRB-").replace(")", "-RRB-") for words in sentences]
    found = outputs(trained, lines, search, backend=backend, bf16=bf16)
    return (mended(text, words.split(" ")) if words else None for words, text in found)


@dataclass(frozen=True)
class SentenceScores:
    """How likely given translations are, sentence by sentence; logarithms are natural, end symbols count as tokens."""

    log_probs: tuple[float, ...]  # of each sentence, the sum over its tokens
    n_each: tuple[int, ...]  # tokens of each sentence, of the target

    @property
    def n_tokens(self) -> int:
        """The tokens of all targets."""
        return sum(self.n_each)

    @property
    def nll(self) -> float:
        """Mean over all tokens, nats."""
        return -math.fsum(self.log_probs) / self.n_tokens

    @property
    def ppl(self) -> float:
        """Perplexity of all sentences, per token."""
        return math.exp(self.nll)

    @property
    def ppls(self) -> tuple[float, ...]:
        """Perplexity of each sentence, per token."""
        return tuple(math.exp(-total / n) for total, n in zip(self.log_probs, self.n_each, strict=True))


def score_sentences(trained: Trained, sources: Sequence[str], targets: Sequence[str]) -> SentenceScores:
    """How likely `targets` are as outputs for `sources`, line by line.

    Raises ValueError for sides of unequal length and a line that is too long.
    """
    import torch

    from repro.data.batch import DevBatches

    if (n := len(sources)) != (m := len(targets)) or not n:
        raise ValueError(f"expected as many sources as targets, and one at least; got {n} and {m}.")
    source, target = as_ids(trained.tokenizer, sources), as_ids(trained.tokenizer, targets)
    for name, side in (("source", source), ("target", target)):
        refuse_long(side, n_places(trained.model), f"line of the {name}")
    batches, model = DevBatches(source, target, budget=BUDGET, rank=0, world=1), trained.model
    device = model.embedding.weight.device
    found = torch.zeros(n, dtype=torch.float64)
    with torch.inference_mode(), torch.autocast(device.type, enabled=False):  # whatever precision the caller uses
        for batch in (batches[i] for i in range(len(batches))):
            read, decoder_in, gold = (
                torch.as_tensor(side, device=device) for side in (batch.source, batch.decoder_in, batch.target)
            )
            log_p = model.embedding.logits(model.decode(decoder_in, model.encode(read), read)).log_softmax(-1)
            of_token = log_p.gather(-1, gold[..., None])[..., 0].double()
            found[batch.sentence] = of_token.masked_fill(gold == PAD, 0.0).sum(-1).cpu()
    return SentenceScores(tuple(found.tolist()), tuple(batches.target.lengths.tolist()))


@dataclass(frozen=True, eq=False)  # arrays compare element by element, and have no hash
class Attention:
    """Where each head looks: by part and layer float32 [H, Q, K], rows sum to one."""

    source_tokens: tuple[str, ...]  # what the encoder reads, the end symbol last
    target_tokens: tuple[str, ...]  # what the decoder reads: "(begin)", a zero vector; then the target without its end
    weights: "Mapping[tuple[str, int], NDArray[float32]]"  # by ("encoder" | "decoder" | "cross", layer from 1)

    def __repr__(self) -> str:
        """Its tokens and layers; the numbers are in `head`."""
        parts = ", ".join(f"{part} {layer}" for part, layer in self.weights)
        return f"<attention from {len(self.source_tokens)} to {len(self.target_tokens)} tokens; {parts}>"

    def head(self, part: str, layer: int, head: int) -> "DataFrame":
        """The weights of one head: a row for each query token, a column for each key; layers and heads count from 1.

        Raises ValueError for a head that the model does not have.
        """
        from pandas import DataFrame

        if head not in range(1, 1 + len(self.weights.get((part, layer), ()))):
            known = ", ".join(f"{name} {number} ({len(of)} heads)" for (name, number), of in self.weights.items())
            raise ValueError(f"expected a head, from 1 on, of one of: {known}; got {part} {layer}, head {head}.")
        looking = self.source_tokens if part == "encoder" else self.target_tokens
        seen = self.target_tokens if part == "decoder" else self.source_tokens
        return DataFrame(self.weights[part, layer][head - 1], index=list(looking), columns=list(seen))

    def plot(self, part: str = "cross", layer: int | None = None, head: int | None = None) -> "Figure":
        """A picture of one head, or of the mean over the heads of a layer, by default the last layer.

        Queries are on the left, keys above. Raises ValueError for a head that the model does not have.
        """
        from matplotlib.figure import Figure

        of_part = [number for name, number in self.weights if name == part]
        layer = max(of_part, default=1) if layer is None else layer
        shown = self.head(part, layer, 1 if head is None else head)
        weights = self.weights[part, layer].mean(0) if head is None else shown.to_numpy()
        figure = Figure(figsize=(1.5 + 0.4 * len(shown.columns), 1.2 + 0.3 * len(shown.index)), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_xticks(range(len(shown.columns)), [*shown.columns], rotation=60, ha="left")
        axes.set_yticks(range(len(shown.index)), [*shown.index])
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
        axes.set_title(f"{part}, layer {layer}, {'mean of the heads' if head is None else f'head {head}'}")
        return figure


def attention_of(trained: Trained, source: str, target: str) -> Attention:
    """Where each head looks while `target` is read as the output for `source`. Raises ValueError without heads."""
    import torch

    from repro.decoding.inside import BEGIN

    ids, written = (trained.tokenizer.encode([line])[0].tolist() for line in (source, target))
    read = [PAD, *written[:-1]]
    device = trained.model.embedding.weight.device
    maps = {}
    if hasattr(trained.model, "attention_maps"):
        with torch.inference_mode(), torch.autocast(device.type, enabled=False):
            maps = trained.model.attention_maps(*(torch.tensor([side], device=device) for side in (ids, read)))
    if not maps:
        run = trained.record
        raise ValueError(f"expected a model whose heads have weights; row {run.row!r} of {run.table} has none.")
    weights = {}
    for name, found in maps.items():
        stack, layer, kind = name.split(".")[:3]
        weights[PARTS[f"{stack}.{kind}"], int(layer) + 1] = found[0].float().cpu().numpy()
    names = {PAD: BEGIN, EOS: SPECIAL[EOS]}

    def texts(side: Sequence[int]) -> tuple[str, ...]:
        return tuple(names.get(id) or trained.tokenizer.decode([id]) for id in side)

    return Attention(texts(ids), texts(read), weights)
