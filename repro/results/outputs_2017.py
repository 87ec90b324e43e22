"""The scores of published translations of newstest2017, computed here and kept in one file without any text.

Seven systems of 2017, trained on WMT 2017 English-German by Hieber et al. (2017) or by the authors of a toolkit: two
recurrent, two convolutional and three Transformers. `repro/results/scored_2017.py` scores them, and
`repro/pages/outputs_2017.py` shows the scores; nothing here needs the text.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

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
    try:
        content = signed_json.read(file, "scores", FORMAT)
        del content["format"]
        return Outputs2017(**{**content, "systems": [ScoredOutput(**one) for one in content["systems"]]})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        advice = "Restore the file from git, or delete it and run experiments/outputs_2017.py again."
        raise ValueError(f"{file}: {error}. {advice}") from error
