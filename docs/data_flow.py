"""Make docs/data_flow.md and its picture: what happens to the text, which files to read, which folder imports which.

    python docs/data_flow.py

The arrows and the walk name files and functions; their sentences are docstrings, and a name that is gone is an error.
The picture is drawn from the imports.
"""

# ruff: noqa: E501 (sentences of the page stay whole)

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "repro"
PAGE = ROOT / "docs" / "data_flow.md"
PICTURE = ROOT / "docs" / "floors.svg"
DECIDING = ("model", "data", "decoding", "training")  # what can change a number
WALK = (  # what `python experiments/table3_A.py` calls, in order
    "experiment main",
    "runs/sweep Sweep",
    "runs/run Run",
    "corpora/prepare prepare",
    "data/batching Plan",
    "data/datamodule TranslationData",
    "training/loop fit",
    "training/module TranslationModule",
    "model/transformer Transformer",
    "decoding/beam beam_search",
    "results/frame table",
)


class Arrow(NamedTuple):
    """From what to what, what goes through it, and the modules to read."""

    title: str
    says: str
    modules: str


ARROWS = (
    Arrow(
        "an address or your own files -> text",
        "Archives are identified by their hashes; your own tables and compressed files become the same folder of files of lines. "
        "[WMT 2014 step by step](wmt14.md), [text of your own](own_text.md). The embedded corpus is written by a grammar.",
        "corpora/sources corpora/fetch corpora/importer corpora/grammar/generate",
    ),
    Arrow(
        "text -> lines",
        r"Strict UTF-8, a line ends at `\n` and nowhere else, line i of one file translates line i of the other. Bad pairs "
        "of the training text are counted by reason and left out; in held-out text they are refused.",
        "corpora/catalogue corpora/parallel_text data/treebank",
    ),
    Arrow(
        "lines -> tokenizer",
        "One vocabulary of V tokens for both languages, learned on the training text only. Id 0 is padding, id 1 the end.",
        "data/tokenizer model/special_tokens",
    ),
    Arrow(
        "tokenizer -> ids",
        "For each side and shard one flat array of ids (uint16, or uint32 where V needs it) and the offsets of its "
        "sentences, memory-mapped; each sentence ends in the end symbol.",
        "corpora/prepare data/shards corpora/datacard",
    ),
    Arrow(
        "ids -> plan",
        "All updates of an epoch as a pure function of (data hash, seed, epoch): sentence numbers [n] and where each "
        "update begins [n_updates + 1], each update at most so many tokens a side.",
        "data/batching",
    ),
    Arrow(
        "plan -> Batch",
        "`source` [B, S], `decoder_in` [B, T] (padding, then y1 .. yn), `target` [B, T] (y1 .. yn, then the end). "
        "A process takes every n-th sentence of an update, for n = processes x micro-batches. "
        "[With a Trainer of your own](lightning.md).",
        "data/datamodule data/batch",
    ),
    Arrow(
        "Batch -> logits",
        "Encoder memory [B, S, d_model]; decoder output [B, T, d_model]; logits [B, T, V] by the shared embedding matrix.",
        "model/config model/masks model/transformer model/embedding model/layers model/attention",
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
        "training/loop training/callbacks training/replay_check storage/journal",
    ),
    Arrow(
        "optimizer step -> checkpoints -> averaged weights",
        "Weights, moments and counters at a step; no iterator and no random state, since both are functions of the step.",
        "training/checkpoint storage/atomic",
    ),
    Arrow(
        "averaged weights -> translations",
        "The search knows no model: it takes a function from (last tokens [R], state, K) to the K likeliest next tokens "
        "(log-probabilities [R, K], ids [R, K], state). It returns ids in the order of the sentences, and text.",
        "decoding/translate decoding/beam model/kv_cache",
    ),
    Arrow(
        "translations -> BLEU",
        "Two scores of the same text, each with its signature; for trees F1 of their brackets.",
        "decoding/bleu decoding/evalb",
    ),
    Arrow(
        "all of it -> record",
        "One row and one seed make one run in a folder of its own, and leave one JSON file: settings, scores, learning "
        "curves, cost, and where every number comes from.",
        "training/run_spec training/stages runs/run_dir runs/run runs/sweep results/record results/provenance storage/lease",
    ),
    Arrow(
        "records -> tables and verdicts -> pages",
        "A frame with one line per row, mean and 95 % t-interval over seeds; each claim of the paper with what the rows "
        "say about it. None of this asks the tracker or imports torch.",
        "results/frame results/departures claims/catalogue claims/blocks claims/judge pages/build render/page",
    ),
    Arrow(
        "layers -> Table 1",
        "The layer types are built, counted and timed; what was measured is kept in one file and judged.",
        "complexity/measure",
    ),
    Arrow(
        "records, checkpoints -> figures",
        "Figures 1 and 2 are drawn from the model's own modules, 3 to 5 from a checkpoint, the others from records.",
        "figures/draw figures/architecture figures/attention_maps figures/scores",
    ),
    Arrow(
        "records -> a report in the browser",
        "Sections, each a function of what is known of a scale, become one self-contained file of HTML: no server, no "
        "request. Its scripts and its style are in `repro/web/assets/`.",
        "web/report web/charts",
    ),
    Arrow(
        "journals -> MLflow",
        "A mirror: training never waits for it, and no table asks it.",
        "tracking/mirror tracking/views",
    ),
    Arrow(
        "what is typed or called -> all of this",
        "An experiment file, `python -m repro`, or `import repro`.",
        "experiment cli/commands cli/library",
    ),
)

HEAD = """\
<!-- Made by `python docs/data_flow.py`; do not edit. -->

# The way of the data

The data goes one way, and imports run the other way: a file knows what comes before it, never what comes after.

```
lines -> tokenizer -> ids (memory-mapped) -> plan of length buckets -> Batch
      -> logits -> loss -> optimizer step -> checkpoints -> averaged weights
      -> beam search -> BLEU -> record -> table
```

## What happens when you type `python experiments/table3_A.py`

Twelve files, in the order in which they are called:

1. `experiments/table3_A.py`: the rows, each a change of the base row.
"""
ARROWS_HEAD = """
## Arrow by arrow

B sentences of a batch, S source and T target tokens of the longest of them, V tokens in the vocabulary, R hypotheses in a
search. Every length counts the end symbol.

"""
FLOORS_HEAD = """
## Floors

A folder of `repro/` imports only from folders below it (`tests/test_structure.py`). The four in colour can change a number; they
import nothing else but the writing of files, so a change of anything else makes no finished run old.

![The folders of repro/ as floors: each imports only from those below](floors.svg)
"""


def said(module: str, name: str | None = None) -> str:
    """The first line of the docstring of a module, or of what it defines under this name. Raises ValueError for none."""
    node: ast.AST = ast.parse((PACKAGE / f"{module}.py").read_bytes())
    if name is not None:
        node = next((one for one in ast.iter_child_nodes(node) if getattr(one, "name", None) == name), node)
        if isinstance(node, ast.Module):
            raise ValueError(f"repro/{module}.py: expected {name}, which WALK in docs/data_flow.py names.")
    assert isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    line = (ast.get_docstring(node) or "").partition("\n")[0]
    if not line:
        raise ValueError(f"repro/{module}.py: expected a docstring of {name or 'the module'}.")
    return line


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for number, step in enumerate(WALK, 2):
        module, name = step.split()
        parts.append(f"{number}. `repro/{module}.py`, `{name}`: {said(module, name)}\n")
    parts.append(ARROWS_HEAD)
    for arrow in ARROWS:
        files = "; ".join(f"`repro/{module}.py`" for module in arrow.modules.split() if said(module))
        parts.append(f"- **{arrow.title}.** {arrow.says} Read {files}.\n")
    return "".join([*parts, FLOORS_HEAD])


def folders() -> dict[str, set[str]]:
    """Each folder, or file, of the package with those that it imports from; what only calls a command is left out."""
    found: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).with_suffix("").parts[0]
        if not name.startswith("__"):
            found.setdefault(name, set()).update(one for one in _imported(file) if one != name)
    return found


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (inside := re.fullmatch(r"repro\.(\w+)[\w.]*", node.module or "")):
            yield inside.group(1)
        elif isinstance(node, ast.ImportFrom) and node.module == "repro":
            yield from (alias.name for alias in node.names)


def floors() -> list[list[str]]:
    """The folders by floor, the lowest first: each as low as what it imports allows."""
    imports, placed = folders(), dict[str, int]()
    while len(placed) < len(imports):
        ready = [one for one in imports if one not in placed and imports[one] <= placed.keys()]
        if not ready:
            raise ValueError(f"Imports of folders go in a circle: {sorted(imports.keys() - placed.keys())}.")
        placed |= {one: 1 + max((placed[below] for below in imports[one]), default=-1) for one in ready}
    return [[one for one in imports if placed[one] == floor] for floor in range(1 + max(placed.values()))]


def picture() -> str:
    """The floors as an SVG, light and dark."""
    rows = floors()
    height = 34 * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 {height}" width="560" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">\n'
        "<style>text{fill:#222}.any{fill:#eceff3}.deciding{fill:#f2c6b5}@media(prefers-color-scheme:dark)"
        "{text{fill:#eee}.any{fill:#333a44}.deciding{fill:#7d4532}}</style>\n"
    ]
    for floor, names in enumerate(reversed(rows)):
        for place, name in enumerate(names):
            x, y = 280 + 130 * (place - len(names) / 2), 8 + 34 * floor
            kind = "deciding" if name in DECIDING else "any"
            parts.append(
                f'<rect class="{kind}" x="{x + 4:g}" y="{y}" width="122" height="26" rx="4"/>'
                f'<text x="{x + 65:g}" y="{y + 18}" text-anchor="middle">{name}</text>\n'
            )
    return "".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    PICTURE.write_text(picture(), "utf-8")
