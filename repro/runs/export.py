"""Exported models: a finished run as a folder for Hugging Face, for CTranslate2, or of plain safetensors.

The folder holds weights, configuration and tokenizer, the record of the run, and a model card made from it
(`README.md`), in which no number is typed by hand.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from repro.corpora.catalogue import CORPORA
from repro.render.markup import markdown
from repro.render.page import Code, Column, Heading, Listing, Page, Table, Text, Words, blocks
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


# The model card ---------------------------------------------------------------------------------------------------

LIBRARY = {"huggingface": "transformers", "ctranslate2": "ctranslate2", "safetensors": "safetensors"}
NOTES: Mapping[str, tuple[Words, ...]] = {
    "huggingface": (
        "MarianMT: AutoModelForSeq2SeqLM and AutoTokenizer of transformers, 4.52 or newer, open this folder.",
        (
            Code("ids = model.generate(**tokenizer(lines, return_tensors='pt', padding=True), max_length=512)"),
            " translates a list of lines of at most 1,024 tokens, and ",
            Code("tokenizer.batch_decode(ids, skip_special_tokens=True)"),
            " are the translations.",
        ),
        "Its layer norms add 1e-5 to the variance where this model was trained with 1e-6, and its search ranks by "
        "log-probability / length^0.6 where the scores below rank by / ((5 + length) / 6)^alpha: sometimes a "
        "translation differs. The start symbol is a class more, of probability 0.",
    ),
    "ctranslate2": (
        (
            Code("Translator(folder).translate_batch(tokens, max_input_length=0, max_decoding_length=512)"),
            " translates. Tokens are the ids of tokenizer.json in digits, and “1”, the end symbol, belongs at the end "
            "of each source, of at most 4,096 tokens (512 where positions were learned).",
        ),
        "Its search ranks by log-probability / length, the scores below by / ((5 + length) / 6)^alpha.",
    ),
    "safetensors": (
        "Weights under the names of this project, whose repro.load opens the folder and gets the same bits.",
    ),
}
OF_PARSERS = (
    "A parser: it writes the brackets and labels of a tree without its words, as learned. python -m repro parse makes "
    "trees of them, which are what the scores below are of."
)


def model_card(run: Record, to: str, *, weights: str | None = None) -> str:
    """README.md of an exported folder: what it is, how to open it, scores, text, recipe, licence."""
    translates, corpus = run.about["scores"] == TRANSLATION["scores"], run.corpus
    known, commit = CORPORA.get(corpus["name"]), run.stamp["commit"]
    generated = ", which a grammar of few words generates: on other text its output is useless"
    recipe = {**run.hyper, "precision": run.settings.get("precision"), "device": run.stamp["device"]}
    page = Page(
        f"Made from record.json of run {run.run}; do not edit the numbers.",
        blocks(
            Heading(f"{run.pair}: {run.row} of {run.table}, scale {run.scale}, seed {run.seed}", 1),
            Text(
                f"A model of {run.params['here']:,} parameters ({run.system or 'Transformer'}), trained to reproduce a "
                f"row of “Attention Is All You Need” (Vaswani et al., 2017). Run {run.run}, commit "
                f"{commit[:12] if commit else 'unknown'}{', with changes that are in none' * bool(run.stamp['dirty'])}."
            ),
            Heading("How to load it"),
            Listing((*NOTES[to], *(() if translates else (OF_PARSERS,)))),
            Text(f"Weights: model.safetensors, SHA-256 {weights}.") if weights else (),
            Heading("Scores"),
            Text("One run with one seed: no interval."),
            _scores(run),
            Heading("Text and use"),
            Listing(
                (
                    f"{corpus['name']} {run.pair}: {corpus['n_train']:,} pairs of training text, {corpus['n_dev']:,} "
                    f"of dev, {corpus['n_test']:,} of test; SHA-256 {corpus['sha256']}. It was trained on sentences "
                    f"like these{generated if known and known.is_generated else ', and tried on no others'}.",
                    f"Vocabulary: {run.tokenizer['size']:,} tokens for both sides, SHA-256 {run.tokenizer['sha256']}.",
                    f"Licence of the text: {known.licence if known else 'as its owner says'}. Its terms may also apply "
                    "to weights that were learned from it.",
                    "To study how the paper's model learns and to compare it with other rows; not to be relied on. At "
                    f"this scale a run may claim {run.settings.get('claim', 'nothing')}.",
                )
            ),
            Heading("Recipe"),
            Text(", ".join(f"{name} {value}" for name, value in recipe.items() if value is not None) + "."),
        ),
    )
    return _front(run, to, translates) + markdown(page)


def _front(run: Record, to: str, translates: bool) -> str:
    """The YAML header that Hugging Face reads; its values are JSON, which is valid YAML."""
    facts = {
        "language": run.pair.split("-", 1)[: 2 if translates else 1],  # a tree is in no language
        "library_name": LIBRARY[to],
        "license": "other",
        "license_name": "as-the-text",
        **({"pipeline_tag": "translation"} if translates else {}),
        "tags": ["attention-is-all-you-need", run.table],
    }
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items())
    return "\n".join(["---", *lines, "---", "", ""])


def _scores(run: Record) -> Table:
    """Dev and test, each score with what it was made by."""
    names = ["nll", "ppl", *run.about["scores"]]
    values = [(split, name, number(run.scores[split], name)) for split in SPLITS for name in names]
    known = [(split, name, value) for split, name, value in values if value is not None]
    return Table(
        (
            Column("", "score", [f"{split}/{name}" for split, name, _ in known]),
            Column("", "value", [f"{value:.4g}" if name == "nll" else f"{value:.2f}" for _, name, value in known]),
            Column("", "made by", [signature(run.scores[split], name) or "" for split, name, _ in known], True),
        )
    )
