"""What was measured without a run, each in one file under results/: Table 1's layers, and published translations.

`repro/complexity/measure.py` measures the layers (paper: section 4), and this file needs no torch.
Seven systems of 2017 were trained on WMT 2017 English-German by Hieber et al. (2017) or by the authors of a toolkit:
two recurrent, two convolutional and three Transformers. Their translations are scored here, and the scores kept without
any text. The files are `newstest2017.en`, `.ref.de` and `.hyp.<kind>-<toolkit>.de`, plain or gzip, in one folder; they
are read, never copied. Paper: Table 2 prints such systems.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path as File
from typing import Any, TypeVar

from repro.results.provenance import Provenance
from repro.storage import signed_json
from repro.storage.atomic import write_bytes

FORMAT = 1
LAYER_COSTS_FOLDER, FOLDER_2017, SCORES_2017 = "table1", "newstest2017", "scores.json"  # under results/
QUARTERS = 4
KINDS = {"rnn": "recurrent, soft alignment", "cnn": "convolutional", "transformer": "Transformer"}
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The sizes at which the layers are built, and how often they are timed."""

    n: tuple[int, ...]  # lengths at which operations and memory are counted
    n_odd: tuple[int, ...]  # odd lengths, which a kernel can have as well: k = n
    d: tuple[int, ...]
    windows: tuple[int, ...]  # kernels k and neighbourhoods r; time is measured at the first
    n_paths: tuple[int, ...]  # lengths at which steps are counted and gradients followed
    n_timed: tuple[int, ...]
    d_timed: tuple[int, ...]
    n_scored: tuple[int, ...]  # additive against dot-product attention
    d_k: tuple[int, ...]
    rounds: int


@dataclass(frozen=True)
class Count:
    """Operations and memory of one layer for one sequence."""

    layer: str
    n: int
    d: int
    window: int | None  # kernel k or neighbourhood r
    flops: int  # multiplications and additions of the forward pass, the whole layer
    mixing_flops: int  # those that combine positions
    saved_bytes: int  # kept for the backward pass, parameters left out


@dataclass(frozen=True)
class Steps:
    """Matrix products that must run one after another in the mixing of one layer."""

    layer: str
    n: int
    window: int | None
    steps: int


@dataclass(frozen=True)
class Path:
    """Layers, or steps of a recurrence, between the positions that are furthest apart."""

    layer: str
    n: int
    window: int | None
    path: int


@dataclass(frozen=True)
class Time:
    """Seconds of a forward and backward pass of one layer, one number for each round."""

    layer: str
    n: int
    d: int
    window: int | None
    seconds: list[float]


@dataclass(frozen=True)
class ScoringCount:
    """Operations and kept bytes of the heads of one sequence with dot-product or additive scores."""

    scoring: str
    n: int
    d_k: int
    flops: int
    saved_bytes: int


@dataclass(frozen=True)
class ScoringTime:
    """Seconds of a forward and backward pass of the heads of one sequence, one number for each round."""

    scoring: str
    n: int
    d_k: int
    seconds: list[float]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All measurements of one call, and where they come from."""

    grid: dict[str, Any]
    settings: dict[str, Any]
    counts: list[Count]
    steps: list[Steps]
    paths: list[Path]
    times: list[Time]
    scoring_counts: list[ScoringCount]
    scoring_times: list[ScoringTime]
    stamp: Provenance


@dataclass(frozen=True)
class ScoredOutput:
    """The scores of one system's translations."""

    kind: str  # of `KINDS`
    toolkit: str
    bleu: float  # sacreBLEU
    quarters: list[float]  # by number of words in the source, the shortest sentences first
    sha256: str  # of the translations


@dataclass(frozen=True, kw_only=True)
class Outputs2017:
    """The scores of all systems on one test set."""

    sentences: int
    signature: str
    references_sha256: str
    systems: list[ScoredOutput]


# by the kind of measurement: its file, what it is called, the experiment that makes it, and its lists
FILES: dict[type, tuple[str, str, str, dict[str, Any]]] = {
    Measured: (
        f"{LAYER_COSTS_FOLDER}/measured.json", "measurements", "table1",
        {"counts": Count, "steps": Steps, "paths": Path, "times": Time}
        | {"scoring_counts": ScoringCount, "scoring_times": ScoringTime},
    ),
    Outputs2017: (f"{FOLDER_2017}/{SCORES_2017}", "scores", "outputs_2017", {"systems": ScoredOutput}),
}  # fmt: skip


def save(results: File, measured: Measured | Outputs2017) -> None:
    """Write measurements under `results` together with the checksum of their content."""
    content = json.loads(json.dumps({"format": FORMAT, **asdict(measured)}))  # tuples become lists, as they are read
    write_bytes(results / FILES[type(measured)][0], signed_json.signed(content))


def load(results: File, kind: type[T]) -> T | None:
    """Read the measurements of this kind; None where there are none. Raises ValueError for an invalid file."""
    name, what, experiment, lists = FILES[kind]
    if not (results / name).exists():
        return None
    advice = f"Restore the file from git, or delete it and run experiments/{experiment}.py again."
    content = signed_json.read(results / name, what, FORMAT, advice)
    del content["format"]
    return kind(**content | {name: [of(**line) for line in content[name]] for name, of in lists.items()})


# Scoring of published translations

OUTPUTS_FOLDER, STEM = "outputs_newstest2017_ende", "newstest2017"
ORIGIN = (
    "They are the outputs of Hieber et al. (2017), awslabs/sockeye, branch arxiv_1217, folder arxiv/output: "
    "name its folder with --data-dir, or the one above it in REPRO_DATA."
)


def found_outputs(data_dir: File | None) -> File:
    """The folder with the translations. Raises FileNotFoundError that says where to get them."""
    roots = [data_dir] if data_dir else [File(os.environ["REPRO_DATA"])] if os.environ.get("REPRO_DATA") else []
    for place in (folder for root in roots for folder in (root, root / OUTPUTS_FOLDER)):
        if [*place.glob(f"{STEM}.hyp.*.de*")]:
            return place
    looked = ", ".join(map(str, roots)) or "no folder: none is named"
    raise FileNotFoundError(
        f"Published translations of newstest2017: expected {STEM}.en, {STEM}.ref.de and "
        f"{STEM}.hyp.<kind>-<toolkit>.de, plain or .gz; looked in {looked}. {ORIGIN}"
    )


def score_outputs(folder: File) -> Outputs2017:
    """Score by sacreBLEU, whole and by quarter of source length. Raises ValueError for sides that are not parallel."""
    from repro.corpora.parallel_text import Parallel
    from repro.decoding.bleu import sacrebleu_score  # pages import this module, and not the scorers
    from repro.results.details import by_length
    from repro.results.sentences import ngram_counts, sha256_of

    source, reference = (_file(folder, part) for part in ("en", "ref.de"))
    pairs = [*Parallel(source, reference).pairs()]
    words, references = [len(line.split()) for line, _ in pairs], [line for _, line in pairs]
    systems, signature = [], ""
    for name in sorted({file.name.removesuffix(".gz") for file in folder.glob(f"{STEM}.hyp.*.de*")}):
        if not name.endswith(".de"):
            continue
        file = _file(folder, name.removeprefix(f"{STEM}."))
        kind, _, toolkit = name.split(".")[2].partition("-")
        if kind not in KINDS:
            raise ValueError(f"{file}: expected a kind of {', '.join(KINDS)} after 'hyp.', got {kind!r}. Rename it.")
        lines = [line for line, _ in Parallel(file, reference).pairs()]
        score = sacrebleu_score(lines, references, "de")
        signature = score.signature
        quarters = by_length(ngram_counts(lines, references, "de")[0], words, QUARTERS)
        systems.append(ScoredOutput(kind, toolkit, score.bleu, quarters, sha256_of(lines)))
    of = {"signature": signature, "references_sha256": sha256_of(references)}
    return Outputs2017(sentences=len(words), systems=systems, **of)


def _file(folder: File, part: str) -> File:
    for name in (f"{STEM}.{part}", f"{STEM}.{part}.gz"):
        if (file := folder / name).is_file():
            return file
    raise FileNotFoundError(f"{folder}: expected {STEM}.{part}, plain or .gz, found neither. {ORIGIN}")
