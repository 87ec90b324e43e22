"""The model card of an exported model, made from the record of its run: no number is typed by hand."""

import json
from collections.abc import Mapping, Sequence

from repro.corpora.catalogue import CORPORA
from repro.render.markdown import markdown
from repro.render.page import Block, Code, Column, Heading, Listing, Page, Table, Text, Words, blocks
from repro.results.record import Record
from repro.results.task import SPLITS, TRANSLATION, number, signature

LIBRARY = {"huggingface": "transformers", "ctranslate2": "ctranslate2", "safetensors": "safetensors"}
NEEDED = {
    "huggingface": "transformers torch",
    "ctranslate2": "ctranslate2 tokenizers",
    "safetensors": "torch safetensors tokenizers",
}
NOTES: Mapping[str, Sequence[Words]] = {
    "huggingface": (
        "MarianMT, opened by AutoModelForSeq2SeqLM and AutoTokenizer. The model's dimensions are in MarianMT's order.",
        (
            "In transformers 5, and in 4 from 4.52 on, ",
            Code("ids = model.generate(**tokenizer(lines, return_tensors='pt', padding=True))"),
            " translates a list of lines, and ",
            Code("tokenizer.batch_decode(ids, skip_special_tokens=True)"),
            " are the translations. ",
            Code("pipeline('translation', model=folder)"),
            " does the same in transformers 4; version 5 has no such pipeline.",
        ),
        "MarianMT's layer norms add 1e-5 to the variance where this model was trained with 1e-6, and have no setting "
        "for it: log-probabilities differ a little, and sometimes a translation does.",
        "Its search ranks by log-probability / length^0.6; the scores below rank by log-probability / "
        "((5 + length) / 6)^alpha, and let a translation be 50 tokens longer than its source. At length_penalty 0 and "
        "alpha 0 both give the same ranking.",
        "At most 1,024 tokens of source; a translation ends at 512 by itself, and at max_length where that is given.",
        "The start symbol is a class more than the model was trained with, of probability 0. A smoothed loss counts "
        "it: with epsilon 0.1 that adds 20 nats / size of the vocabulary.",
    ),
    "ctranslate2": (
        "Tokens are called by their numbers, in digits; the end symbol is 1 and belongs at the end of each source.",
        "Its search ranks by log-probability / length; the scores below rank by log-probability / "
        "((5 + length) / 6)^alpha.",
        (
            "At most 4,096 tokens of source and of translation, 512 where positions were learned. By itself the "
            "library leaves out what is beyond 1,024 tokens of a source, and ends a translation at 256: ",
            Code("max_input_length=0"),
            " and ",
            Code("max_decoding_length"),
            " change that, as in example.py.",
        ),
        "It translates and scores; it does not train.",
    ),
    "safetensors": (
        "Weights under the names of this project, whose repro.load opens the folder and gets the same bits.",
        "example.py is the whole model on one screen, with greedy search; the scores below are from beam search.",
    ),
}

OF_PARSERS = (
    "A parser: it writes the brackets and labels of a tree without its words, as learned. python -m repro parse makes "
    "trees of them, which are what the scores below are of."
)


def model_card(run: Record, to: str, *, has_example: bool, weights: str | None = None) -> str:
    """README.md of an exported folder: what it is, how to open it, text, recipe, scores, use, licence."""
    translates = run.about["scores"] == TRANSLATION["scores"]
    page = Page(
        f"Made from record.json of run {run.run}; do not edit the numbers.",
        blocks(
            Heading(f"{run.pair}: {run.row} of {run.table}, scale {run.scale}, seed {run.seed}", 1),
            Text(
                f"A model of {run.params['here']:,} parameters ({run.system or 'Transformer'}), trained to reproduce a "
                f"row of “Attention Is All You Need” (Vaswani et al., 2017). Run {run.run}, {_commit(run)}."
            ),
            Heading("How to load it"),
            _example(to) if has_example else (),
            Listing((*NOTES[to], *(() if translates else (OF_PARSERS,)))),
            Text(f"Weights: model.safetensors, SHA-256 {weights}.") if weights else (),
            Heading("Scores"),
            Text("One run with one seed: no interval."),
            _scores(run),
            Heading("Intended use"),
            Listing(_use(run, translates)),
            Heading("Text"),
            Listing(_text(run)),
            Heading("Recipe"),
            _pairs("field", {**run.hyper, "precision": run.settings.get("precision"), "device": _device(run)}),
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


def _commit(run: Record) -> str:
    commit = run.stamp["commit"]
    state = " with changes that are in no commit" if run.stamp["dirty"] else ""
    return f"commit {commit[:12]}{state}" if commit else "code of no known commit"


def _example(to: str) -> tuple[Block, ...]:
    """The file that stands beside the card."""
    return blocks(
        Text(("In this folder, without the project that made it: ", Code(f"pip install {NEEDED[to]}"), ", then")),
        Text(Code("python example.py < text > translations")),
    )


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


def _use(run: Record, translates: bool) -> tuple[str, ...]:
    known = CORPORA.get(run.corpus["name"])
    does = f"translate {run.pair}" if translates else "parse"
    return (
        "To study how the paper's model learns and to compare it with other rows; not to be relied on.",
        f"At this scale a run may claim {run.settings.get('claim', 'nothing')}.",
        f"It was trained to {does} sentences like those of its text"
        + (", which a grammar of few words generates: on other text its output is useless." if known and
           known.is_generated else ", and was tried on no others."),
    )  # fmt: skip


def _text(run: Record) -> tuple[str, ...]:
    corpus, known = run.corpus, CORPORA.get(run.corpus["name"])
    return (
        f"{corpus['name']} {run.pair}: {corpus['n_train']:,} pairs of training text, {corpus['n_dev']:,} of dev, "
        f"{corpus['n_test']:,} of test; SHA-256 {corpus['sha256']}.",
        f"Licence of the text: {known.licence if known else 'as its owner says'}. Its terms may also apply to "
        "weights that were learned from it.",
        f"Vocabulary: {run.tokenizer['size']:,} tokens for both sides, SHA-256 {run.tokenizer['sha256']}.",
    )


def _device(run: Record) -> str:
    return run.stamp["device"] or run.stamp["cpu"]


def _pairs(heading: str, facts: Mapping[str, object]) -> Table:
    given = {name: value for name, value in facts.items() if value is not None}
    return Table((Column("", heading, list(given)), Column("", "value", [str(value) for value in given.values()])))
