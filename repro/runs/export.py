"""Exported models: a finished run as a folder for Hugging Face, for CTranslate2, or of plain safetensors.

The folder holds weights, configuration and tokenizer, the record of the run, a model card made from it (`README.md`),
and a script that translates with the folder and without this project (`example.py`).
"""

import hashlib
import os
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
EXAMPLES = {"huggingface": "with_transformers", "ctranslate2": "with_ctranslate2", "safetensors": "with_torch"}
EXAMPLE = "example.py"


def export_run(run: Record, opened: Callable[[], Trained], to: Format, folder: Path) -> None:
    """Write the export under a temporary name, so that `folder` is whole or absent; keeps one that holds this export.

    Raises ValueError for a folder that holds anything else, or whose files are not what was written: nothing in it is
    ever deleted. Also raises it for a row that the format cannot express.
    """
    place = folder.resolve()
    if place.exists() and not place.is_dir():
        raise ValueError(f"expected a folder, got {folder}, which is a file. Name another.")
    if place.exists() and any(place.iterdir()):
        if _exported(place) != (run.run, to):
            raise ValueError(
                f"expected a folder that is new, empty or holds the export of run {run.run} to {to}, got {folder}, "
                "which holds something else. Delete it, or name another."
            )
        try:
            verified(place)
        except FileNotFoundError as error:
            raise ValueError(f"{error.filename} is missing. Delete the folder, or name another.") from error
        except ValueError as error:
            raise ValueError(f"{error} Or name another: what is in {folder} is left as it is.") from error
        return
    above = next(one for one in place.parents if one.exists())
    if not place.exists() and not (above.is_dir() and os.access(above, os.W_OK)):
        why = "may not be written to" if above.is_dir() else "is a file"
        raise ValueError(f"expected a folder that can be made, got {folder}: {above} {why}. Name another.")

    def fill(empty: Path) -> dict[str, Any]:
        trained = opened()
        try:
            _WRITERS[to](trained, empty)
        except ValueError as error:
            raise ValueError(f"row {run.row!r} of {run.table} cannot be exported to {to}: {error}") from error
        run.save(empty / "record.json")
        example = None if run.system else (Path(__file__).parent / "examples" / f"{EXAMPLES[to]}.py").read_bytes()
        if example:
            atomic.write_bytes(empty / EXAMPLE, example)
        origin = _origin(run, to, empty / TENSORS)
        card = model_card(run, to, has_example=example is not None, weights=origin["weights"])
        atomic.write_text(empty / "README.md", card)
        atomic.write_json(empty / ORIGIN, origin)
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


def _exported(folder: Path) -> tuple[Any, Any]:
    """The run whose export a folder holds, whole or damaged, and the format."""
    origin = origin_of(folder)
    return origin.get("run"), origin.get("format")


def _origin(run: Record, to: Format, tensors: Path) -> dict[str, Any]:
    """What the export notes of its run: whose weights these are."""
    names = ("run", "table", "row", "scale", "seed", "pair", "hyper", "tokenizer")
    weights = hashlib.sha256(tensors.read_bytes()).hexdigest() if tensors.exists() else None
    return {name: getattr(run, name) for name in names} | {"format": to, "weights": weights}
