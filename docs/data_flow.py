"""Make docs/data_flow.md: the first line of each module's docstring, in the order of the data.

    python docs/data_flow.py

What a module does stands in the module alone. Here stand the arrows, in order, and what goes through each. A module is
shown where it is named first, else with the other modules of its folder (`data/*`): a new file needs no edit here.
"""

# ruff: noqa: E501 (sentences of the page stay whole)

import ast
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "data_flow.md"


class Arrow(NamedTuple):
    """From what to what, what goes through it, and the modules that do it."""

    title: str
    says: str
    modules: str


ARROWS = (
    Arrow(
        "an address or your own files -> text",
        "Archives are identified by their hashes; your own tables and compressed files become the same folder of files of lines. "
        "[WMT 2014 step by step](wmt14.md), [text of your own](own_text.md). The embedded corpus is written by a grammar.",
        "corpora/download/sources corpora/download/fetch corpora/download/transfer corpora/download/archive corpora/download/* "
        "corpora/importer corpora/grammar/generate corpora/grammar/author corpora/grammar/tree corpora/grammar/*",
    ),
    Arrow(
        "text -> lines",
        r"Strict UTF-8, a line ends at `\n` and nowhere else, line i of one file translates line i of the other. Bad pairs "
        "of the training text are counted by reason and left out; in held-out text they are refused.",
        "corpora/catalogue corpora/pair corpora/parallel_text data/treebank corpora/treebanks",
    ),
    Arrow(
        "lines -> tokenizer",
        "One vocabulary of V tokens for both languages, learned on the training text only. Id 0 is padding, id 1 the end.",
        "data/vocabulary data/tokenizer model/special_tokens",
    ),
    Arrow(
        "tokenizer -> ids",
        "For each side and shard one flat array of ids (uint16, or uint32 where V needs it) and the offsets of its "
        "sentences, memory-mapped; each sentence ends in the end symbol.",
        "corpora/prepare corpora/filters data/shards corpora/datacard storage/folder_cache corpora/*",
    ),
    Arrow(
        "ids -> plan",
        "All updates of an epoch as a pure function of (data hash, seed, epoch): sentence numbers [n] and where each "
        "update begins [n_updates + 1], each update at most so many tokens a side.",
        "data/batching data/order_digest",
    ),
    Arrow(
        "plan -> Batch",
        "`source` [B, S], `decoder_in` [B, T] (padding, then y1 .. yn), `target` [B, T] (y1 .. yn, then the end). "
        "A process takes every n-th sentence of an update, for n = processes x micro-batches. "
        "[With a Trainer of your own](lightning.md).",
        "data/datamodule data/datasets data/batch model/ragged data/*",
    ),
    Arrow(
        "Batch -> logits",
        "Encoder memory [B, S, d_model]; decoder output [B, T, d_model]; logits [B, T, V] by the shared embedding matrix.",
        "model/config model/masks model/transformer model/embedding model/layers model/attention model/* model/ablations/*",
    ),
    Arrow(
        "logits -> loss",
        "Two sums over real targets: smoothed cross-entropy, which is trained, and unsmoothed, which is reported. Logits "
        "exist a few rows at a time and never as a whole. Divided by the target tokens of the whole update.",
        "model/loss training/module",
    ),
    Arrow(
        "loss -> optimizer step",
        "One line of numbers every few steps goes to the run's journal, which MLflow mirrors. Between two steps training "
        "stops when it was asked to, or where a number is NaN or infinite.",
        "training/loop training/schedule training/replay_check training/* storage/journal",
    ),
    Arrow(
        "optimizer step -> checkpoints -> averaged weights",
        "Weights, moments and counters at a step; no iterator and no random state, since both are functions of the step.",
        "training/checkpoint training/averaging storage/atomic",
    ),
    Arrow(
        "averaged weights -> translations",
        "The search knows no model: it takes a function from (last tokens [R], state, K) to the K likeliest next tokens "
        "(log-probabilities [R, K], ids [R, K], state). It returns ids in the order of the sentences, and text.",
        "decoding/search decoding/backend decoding/translate decoding/beam decoding/topk model/kv_cache model/prepacked "
        "decoding/ctranslate decoding/marian runs/export runs/model_card runs/examples/* runs/use",
    ),
    Arrow(
        "translations -> BLEU",
        "Two scores of the same text, each with its signature; for trees F1 of their brackets.",
        "decoding/bleu decoding/*",
    ),
    Arrow(
        "all of it -> record",
        "One row and one seed make one run in a folder of its own, and leave one JSON file: settings, scores, learning "
        "curves, cost, and where every number comes from.",
        "runs/table runs/scales runs/options runs/sweep runs/run_dir training/run_spec training/trial runs/run runs/changed runs/determinism results/record "
        "runs/outputs results/sentences "
        "results/provenance storage/lease storage/signed_json runs/* storage/*",
    ),
    Arrow(
        "records -> tables and verdicts -> pages",
        "A frame with one line per row, mean and 95 % t-interval over seeds; each claim of the paper with what the rows "
        "say about it. None of this asks the tracker or imports torch.",
        "results/kinds results/frame results/notes results/labels results/departures paper claims/catalogue claims/claim claims/judge "
        "claims/decisions claims/blocks claims/* pages/build pages/* render/* results/publish results/*",
    ),
    Arrow(
        "layers -> Table 1",
        "The layer types are built, counted and timed; what was measured is kept in one file and judged.",
        "complexity/*",
    ),
    Arrow(
        "records, checkpoints -> figures",
        "Figures 1 and 2 are drawn from the model's own modules, 3 to 5 from a checkpoint, the others from records.",
        "figures/draw figures/*",
    ),
    Arrow(
        "records -> a report in the browser",
        "Sections, each a function of what is known of a scale, become one self-contained file of HTML: no server, no "
        "request. Its scripts and its style are in `repro/web/assets/`.",
        "web/*",
    ),
    Arrow("journals -> MLflow", "A mirror: training never waits for it, and no table asks it.", "tracking/*"),
    Arrow("what is typed or called -> all of this", "", "experiment cli/commands __init__ cli/library cli/*"),
)

HEAD = """\
<!-- Made by `python docs/data_flow.py` from the first lines of the modules; do not edit. -->

# The way of the data

The data goes one way. Imports run the other way only: a file knows what comes before it, never what comes after
(`tests/test_structure.py`). `model` never imports `data`.

```
lines -> tokenizer -> ids (memory-mapped) -> plan of length buckets -> Batch
      -> logits -> loss -> optimizer step -> checkpoints -> averaged weights
      -> beam search -> BLEU -> record -> table
```

Letters: B sentences of a batch, S source and T target tokens of the longest of them, V tokens in the vocabulary, R
hypotheses in a search. Every length counts the end symbol.
"""


def first_lines() -> dict[str, str]:
    """The first line of each module of the package: {"data/batch": "One micro-batch ..."}."""
    files = sorted((ROOT / "repro").rglob("*.py"))
    trees = {file: ast.parse(file.read_bytes()) for file in files if file.stat().st_size}
    return {
        file.relative_to(ROOT / "repro").with_suffix("").as_posix(): (ast.get_docstring(tree) or "").partition("\n")[0]
        for file, tree in trees.items()
        if not _is_door(file)
    }


def _is_door(file: Path) -> bool:
    """Whether it only calls a command, so that `python -m` finds it."""
    return file.stem == "__main__" or (file.parent.name == "repro" and file.stem in ("report", "ui"))


def placed(modules: list[str]) -> list[list[str]]:
    """The modules of each arrow; each stands where it is named, else where its folder is."""
    patterns = [pattern for arrow in ARROWS for pattern in arrow.modules.split()]
    home: dict[str, str] = {}
    for module in modules:
        fits = [module] if module in patterns else [one for one in patterns if fnmatch(module, one)]
        if not fits:
            raise ValueError(
                f"repro/{module}.py: expected an arrow for it or its folder. Add one in docs/data_flow.py."
            )
        home[module] = fits[0]
    if gone := [one for one in patterns if "*" not in one and one not in modules]:
        raise ValueError(f"docs/data_flow.py names {', '.join(gone)}, which are no modules of repro/. Take them out.")
    return [
        [module for pattern in arrow.modules.split() for module in modules if home[module] == pattern]
        for arrow in ARROWS
    ]


def page() -> str:
    """The whole page."""
    lines = first_lines()
    parts = [HEAD]
    for arrow, modules in zip(ARROWS, placed(list(lines)), strict=True):
        parts += [f"\n## {arrow.title}\n", f"{arrow.says}\n\n" if arrow.says else "\n"]
        parts += [f"- `repro/{module}.py`: {lines[module]}\n" for module in modules]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
