"""Published translations of newstest2017: scored where their files are, and their scores, kept without any text.

Seven systems of 2017, trained on WMT 2017 English-German by Hieber et al. (2017) or by the authors of a toolkit: two
recurrent, two convolutional and three Transformers. The files are `newstest2017.en`, `.ref.de` and
`.hyp.<kind>-<toolkit>.de`, plain or gzip, in one folder; they are read, never copied. Paper: Table 2 prints such
systems.
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from repro.corpora.parallel_text import Parallel
from repro.results.parts import by_length
from repro.results.sentences import ngram_counts, sha256_of
from repro.storage import signed_json

FORMAT = 1
FOLDER_2017, SCORES_2017 = "newstest2017", "scores.json"  # under results/
QUARTERS = 4
KINDS = {"rnn": "recurrent, soft alignment", "cnn": "convolutional", "transformer": "Transformer"}


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


def save_outputs(results: Path, scored: Outputs2017) -> None:
    """Write the scores together with the checksum of their content."""
    signed_json.write(results / FOLDER_2017 / SCORES_2017, {"format": FORMAT, **asdict(scored)})


def load_outputs(results: Path) -> Outputs2017 | None:
    """Read the scores; None where there are none. Raises ValueError for an invalid file."""
    file = results / FOLDER_2017 / SCORES_2017
    if not file.exists():
        return None
    advice = "Restore the file from git, or delete it and run experiments/outputs_2017.py again."
    content = signed_json.read(file, "scores", FORMAT, advice)
    del content["format"]
    return Outputs2017(**content | {"systems": [ScoredOutput(**one) for one in content["systems"]]})


# Scoring

OUTPUTS_FOLDER, STEM = "outputs_newstest2017_ende", "newstest2017"
ORIGIN = (
    "They are the outputs of Hieber et al. (2017), awslabs/sockeye, branch arxiv_1217, folder arxiv/output: "
    "name its folder with --data-dir, or the one above it in REPRO_DATA."
)


def found_outputs(data_dir: Path | None) -> Path:
    """The folder with the translations. Raises FileNotFoundError that says where to get them."""
    roots = [data_dir] if data_dir else [Path(os.environ["REPRO_DATA"])] if os.environ.get("REPRO_DATA") else []
    for place in (folder for root in roots for folder in (root, root / OUTPUTS_FOLDER)):
        if [*place.glob(f"{STEM}.hyp.*.de*")]:
            return place
    looked = ", ".join(map(str, roots)) or "no folder: none is named"
    raise FileNotFoundError(
        f"Published translations of newstest2017: expected {STEM}.en, {STEM}.ref.de and "
        f"{STEM}.hyp.<kind>-<toolkit>.de, plain or .gz; looked in {looked}. {ORIGIN}"
    )


def score_outputs(folder: Path) -> Outputs2017:
    """Score by sacreBLEU, whole and by quarter of source length. Raises ValueError for sides that are not parallel."""
    from repro.decoding.bleu import sacrebleu_score  # pages import this module, and not the scorers

    source, reference = (_file(folder, part) for part in ("en", "ref.de"))
    words, references = zip(
        *((len(line.split()), other) for line, other in Parallel(source, reference).pairs()), strict=True
    )
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
        quarters = by_length(ngram_counts(lines, references, "de"), words, QUARTERS)
        systems.append(ScoredOutput(kind, toolkit, score.bleu, quarters, sha256_of(lines)))
    return Outputs2017(
        sentences=len(words), signature=signature, references_sha256=sha256_of(references), systems=systems
    )


def _file(folder: Path, part: str) -> Path:
    names = [folder / f"{STEM}.{part}", folder / f"{STEM}.{part}.gz"]
    file = next((one for one in names if one.is_file()), None)
    if file is None:
        raise FileNotFoundError(f"{folder}: expected {names[0].name}, plain or .gz, found neither. {ORIGIN}")
    return file
