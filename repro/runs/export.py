"""Exported models: a finished run as a folder for Hugging Face, for CTranslate2, or of plain safetensors.

The folder holds weights, configuration and tokenizer, the record of the run, and a model card made from it
(`README.md`), in which no number is typed by hand.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from repro.corpora.catalogue import CORPORA
from repro.render.markup import md_table, md_text
from repro.render.page import Column, Table
from repro.results.record import SPLITS, TRANSLATION, Record, number, signature
from repro.runs.load import ORIGIN, TENSORS, TOKENIZER, Trained, origin_of
from repro.storage import atomic
from repro.storage.folder_cache import made_once, verified

Format = Literal["huggingface", "ctranslate2", "safetensors"]
FORMATS: tuple[Format, ...] = get_args(Format)
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
            raise ValueError(f"{folder} holds something else than run {run.run} for {to}. Delete it, or name another.")
        verified(place)
        return

    def fill(empty: Path) -> dict[str, Any]:
        trained = opened()
        try:
            _write(trained, to, empty)
        except ValueError as error:
            raise ValueError(f"row {run.row!r} of {run.table} cannot be exported to {to}: {error}") from error
        run.save(empty / "record.json")
        tensors = empty / TENSORS
        weights = hashlib.sha256(tensors.read_bytes()).hexdigest() if tensors.exists() else None
        atomic.write_text(empty / "README.md", model_card(run, to, weights=weights))
        origin = {name: getattr(run, name) for name in OF_RUN}
        atomic.write_json(empty / ORIGIN, origin | {"format": to, "weights": weights})
        return {}

    made_once(place, fill)


def _write(trained: Trained, to: Format, folder: Path) -> None:
    from repro.decoding.ctranslate import export
    from repro.decoding.marian import export_marian, write_tensors

    if to == "huggingface":
        export_marian(trained.model, trained.tokenizer, folder)
        return
    trained.tokenizer.save(folder / TOKENIZER)
    if to == "safetensors":
        write_tensors(folder / TENSORS, trained.model.state_dict())
    elif trained.model.in_ctranslate2:
        export(trained.model, folder)
    else:
        raise ValueError(
            "CTranslate2 knows the Transformer as printed, and this row is another system or has other parts. Export "
            "it with --format safetensors, which keeps any row."
        )


def model_card(run: Record, to: str, *, weights: str | None = None) -> str:
    """README.md of an exported folder: what it is, how to open it, scores, text, recipe, licence."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    names = ["nll", "ppl", *run.about["scores"]]
    values = [(split, name, number(run.scores[split], name)) for split in SPLITS for name in names]
    known = [(split, name, value) for split, name, value in values if value is not None]
    scores = Table(
        (
            Column("", "score", [f"{split}/{name}" for split, name, _ in known]),
            Column("", "value", [f"{value:.4g}" if name == "nll" else f"{value:.2f}" for _, name, value in known]),
            Column("", "made by", [signature(run.scores[split], name) or "" for split, name, _ in known], True),
        )
    )
    recipe = {**run.hyper, "precision": run.settings.get("precision"), "device": run.stamp["device"]}
    page = Environment(
        loader=PackageLoader("repro.runs", "."),
        finalize=lambda value: value if isinstance(value, Markup) else md_text(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return page.get_template("model_card.md.j2").render(
        run=run,
        to=to,
        weights=weights,
        translates=run.about["scores"] == TRANSLATION["scores"],
        known=CORPORA.get(run.corpus["name"]),
        scores=Markup(md_table(scores)),
        recipe=", ".join(f"{name} {value}" for name, value in recipe.items() if value is not None),
    )
