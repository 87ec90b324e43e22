"""Parsing: how many outputs are no tree, and F1, during training. Paper: section 6.3.

Trains one row of Table 4 once as a run does, and keeps its weights at regular steps. With each the first sentences of
dev are parsed, greedily, so that a parser that does not end yet costs no more than the limit. The last line is of the
run's last weights, not of averaged ones. `ppl` is of all of dev, each token given those before it.

Run:  python benchmarks/parse_by_step.py --json benchmarks/records/parse_by_step.json        (6 minutes, one core)
"""

import runpy
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from command import new_parser, save, show
from parse_search import Lines, first_lines, parsed
from torch import Tensor

from repro.data.shards import Encoded
from repro.decoding.search import Search
from repro.model.build import build
from repro.runs.options import Options, Seeds, chosen_scale
from repro.runs.outputs import brackets_of
from repro.runs.run import Silence
from repro.runs.run_dir import RunDir, planned, with_texts
from repro.runs.table import PARSING_SEARCH, Table
from repro.training import stages
from repro.training.checkpoint import path_of, weights
from repro.training.loop import Every

EXPERIMENT = Path(__file__).parent.parent / "experiments" / "table4.py"
GREEDY = Search(beam=1, alpha=0.0, extra=PARSING_SEARCH.extra)
ID = "benchmark"  # of the run, in its checkpoints


def run_of(options: Options, row: str, seed: int) -> RunDir:
    """The run of a row as the experiment would make it, with its text prepared."""
    found = runpy.run_path(str(EXPERIMENT), run_name=EXPERIMENT.stem)
    tables, scale = [Table(name=found["TABLE"], rows=found["ROWS"], title=found["TABLE"])], chosen_scale(options)
    asked = planned(tables, scale, replace(options, rows=(row,), seeds=Seeds((seed,))))
    [run] = with_texts(asked, asked, scale, options, print)
    return run


def trained_at(run: RunDir, each: int) -> Iterator[tuple[int, float, Mapping[str, Tensor]]]:
    """Train to the end; return the kept steps, with the perplexity of dev and the weights at each."""
    kept: dict[int, tuple[float, Mapping[str, Tensor]]] = {}  # by step: the last one is validated twice
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def watch(kind: str, step: int, numbers: dict[str, float]) -> None:
            if kind == "dev":  # the checkpoint of a step is written before its validation
                kept[step] = numbers["ppl"], weights(path_of(folder, step), ID)
                print(f"step {step}: PPL {numbers['ppl']:.3f}", flush=True)

        every = Every(log=each, validate=each, checkpoint=each)
        module = stages.new_module(run.spec, run.prepared)
        options = {"folder": folder, "run": ID, "log": Silence(), "every": every, "watch": watch}
        stages.train(run.spec, run.prepared, module, **options, should_stop=lambda: False)
    yield from ((step, ppl, state) for step, (ppl, state) in kept.items())


def measured(run: RunDir, each: int, words: Lines, references: Lines) -> Iterator[dict[str, Any]]:
    """A line for each kept step."""
    tokenizer = run.prepared.tokenizer
    stages.set_up(run.spec)
    source = Encoded(*tokenizer.encode(words))
    for step, ppl, state in trained_at(run, each):
        model = build(run.spec.system, run.spec.hyper, tokenizer.size).eval()
        model.load_state_dict(state)
        outputs, n_cut = parsed(model, tokenizer, source, GREEDY)
        found = brackets_of(outputs, references)
        kinds = {kind: 100 * float((times > 0).mean()) for kind, times in sorted(found.mended.items()) if times.any()}
        yield {
            "step": step,
            "ppl": ppl,
            **found.scores(),
            "at_limit": 100 * n_cut / len(words),
            "mended_by_kind": kinds,
        }


def main() -> None:
    """Train, parse, print and write down."""
    parser = new_parser(__doc__)
    parser.add_argument("--row", default="WSJ only")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--each", type=int, default=200, help="updates")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--cache-dir", type=Path, default=Path("cache"))
    asked = parser.parse_args()
    options = Options.read("parse_by_step", [f"--scale={asked.scale}", f"--cache-dir={asked.cache_dir}", "--threads=1"])
    run = run_of(options, asked.row, asked.seed)
    words, references = first_lines(run.corpus.dev, asked.sentences)
    lines = list(measured(run, asked.each, words, references))
    show(lines, "step", "ppl", "f1", "exact", "mended", "at_limit")
    of_run = {"table": run.table, "row": asked.row, "seed": asked.seed, "scale": asked.scale}
    told = of_run | {"sentences": len(words), "search": GREEDY.settings, "threads": 1}
    save(asked.json, {"kind": "parse_by_step", **told, "lines": lines})


if __name__ == "__main__":
    main()
