"""Exported models: a finished run as a folder for Hugging Face, for CTranslate2, or of plain safetensors.

The folder holds weights, configuration and tokenizer, the record of the run, and a model card made from it
(`README.md`). Beside plain weights stands a script that translates without this project (`example.py`).
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from repro.results.record import Record
from repro.runs.load import ORIGIN, TENSORS, TOKENIZER, Trained, origin_of
from repro.runs.model_card import model_card
from repro.storage import atomic
from repro.storage.folder_cache import made_once, verified

Format = Literal["huggingface", "ctranslate2", "safetensors"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXAMPLE = Path(__file__).parent / "examples" / "example.py"
OF_RUN = ("run", "table", "row", "scale", "seed", "pair", "hyper", "tokenizer")  # which an export notes: whose it is


def export_run(run: Record, opened: Callable[[], Trained], to: Format, folder: Path) -> None:
    """Write the export under a temporary name, so that `folder` is whole or absent; keeps one that holds this export.

    Raises ValueError for a folder that holds anything else, or whose files are not what was written: nothing in it is
    ever deleted. Also raises it for a row that the format cannot express.
    """
    place = folder.resolve()
    if place.exists() and not place.is_dir():
        raise ValueError(f"expected a folder, got {folder}, which is a file. Name another.")
    if place.exists() and any(place.iterdir()):
        origin = origin_of(place)
        if (origin.get("run"), origin.get("format")) != (run.run, to):
            raise ValueError(
                f"expected a folder that is new, empty or holds the export of run {run.run} to {to}, got {folder}, "
                "which holds something else. Delete it, or name another."
            )
        verified(place)
        return

    def fill(empty: Path) -> dict[str, Any]:
        trained = opened()
        try:
            _WRITERS[to](trained, empty)
        except ValueError as error:
            raise ValueError(f"row {run.row!r} of {run.table} cannot be exported to {to}: {error}") from error
        run.save(empty / "record.json")
        tensors = empty / TENSORS
        weights = hashlib.sha256(tensors.read_bytes()).hexdigest() if tensors.exists() else None
        if to == "safetensors" and not run.system:
            atomic.write_bytes(empty / EXAMPLE.name, EXAMPLE.read_bytes())
        atomic.write_text(empty / "README.md", model_card(run, to, weights=weights))
        origin = {name: getattr(run, name) for name in OF_RUN}
        atomic.write_json(empty / ORIGIN, origin | {"format": to, "weights": weights})
        return {}

    made_once(place, fill)


def _for_huggingface(trained: Trained, folder: Path) -> None:
    from repro.decoding.marian import export_marian

    export_marian(trained.model, trained.tokenizer, folder)


def _for_ctranslate2(trained: Trained, folder: Path) -> None:
    from repro.decoding.ctranslate import export

    if not trained.model.in_ctranslate2:
        raise ValueError(
            "CTranslate2 knows the Transformer as printed, and this row is another system or has other parts. Export "
            "it with --format safetensors, which keeps any row."
        )
    trained.tokenizer.save(folder / TOKENIZER)
    export(trained.model, folder)


def _plain(trained: Trained, folder: Path) -> None:
    from repro.decoding.marian import write_tensors

    trained.tokenizer.save(folder / TOKENIZER)
    write_tensors(folder / TENSORS, trained.model.state_dict())


_WRITERS: dict[Format, Callable[[Trained, Path], None]] = {
    "huggingface": _for_huggingface,
    "ctranslate2": _for_ctranslate2,
    "safetensors": _plain,
}
