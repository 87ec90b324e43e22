"""The model card of an exported model, made from the record of its run: no number is typed by hand."""

import json
from collections.abc import Mapping

from repro.corpora.catalogue import CORPORA
from repro.render.markdown import markdown
from repro.render.page import Code, Column, Heading, Listing, Page, Table, Text, Words, blocks
from repro.results.record import Record
from repro.results.task import SPLITS, TRANSLATION, number, signature

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
        (
            "Without this project: ",
            Code("pip install torch safetensors tokenizers"),
            ", then ",
            Code("python example.py < text > translations"),
            ", the whole Transformer on one screen, with greedy search; the scores below are from beam search.",
        ),
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
