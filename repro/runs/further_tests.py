"""A finished run on the other test sets that lie beside its text: translated and scored as its own was.

It comes after the record, which does not need it, and is made from the checkpoints that the run left: so the same
command makes it for runs that finished before, or whose text lay alone then. Paper: none; for Multi30k others report
test sets of 2016 and 2017, and of MSCOCO.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from repro.results import artifacts
from repro.results.further_tests import FurtherTest, read_further, write_further
from repro.results.record import Record, path
from repro.runs.afterwards import Say, as_trained, has_checkpoints, kept_weights
from repro.tracking.mirror import sync_soon
from repro.tracking.run_folder import RECORD

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from repro.corpora.parallel_text import Parallel
    from repro.runs.run_dir import RunDir
    from repro.tracking.tracker import Tracker

# told the name of a text and its number of sentences; what it gives is told how many are translated, and may raise
Watch = Callable[[str, int], Callable[[int], None]]


def note_further(run: "RunDir", record: Record, tracker: "Tracker", tell: Say, watch: Watch) -> None:
    """Have the scores in the folder of the run and in MLflow, where its checkpoints are there.

    What is there is not made again.
    """
    place = run.folder / RECORD
    if not run.corpus.further or not has_checkpoints(run) or record.status != "finished":
        return
    try:
        kept = read_further(place, record.run)
    except ValueError:  # it can be made again
        kept = {}
    wanted = {name: _sha256(text) for name, text in run.corpus.further.items()}
    lacking = [name for name, sha256 in wanted.items() if name not in kept or kept[name].sha256 != sha256]
    if lacking and (weights := kept_weights(run, tell)) is not None:
        with as_trained(run):
            made = _scored(run, weights, {name: run.corpus.further[name] for name in lacking}, watch)
        write_further(place, record.run, made)
        sync_soon(tracker, run.folder)  # the mirror of the training was closed with the record


def keep_further(run: "RunDir", record: Record, results: "Path", tracker: "Tracker", tell: Say, watch: Watch) -> None:
    """Have the same beside the record under `results`."""
    note_further(run, record, tracker, tell, watch)
    artifacts.copy(run.folder / RECORD, path(results, record), record.run)


def _scored(
    run: "RunDir", weights: "Mapping[str, Tensor]", texts: "dict[str, Parallel]", watch: Watch
) -> dict[str, FurtherTest]:
    from repro.data.shards import Split
    from repro.runs.line_lengths import as_ids

    trial, tokenizer = run.trial, run.prepared.tokenizer
    model = trial.module().model
    model.load_state_dict(weights)
    made = {}
    with trial.opened(model) as opened:
        for name, text in texts.items():
            sources, targets = zip(*text.pairs(), strict=True)
            split = Split(
                source=as_ids(tokenizer, sources),
                target=as_ids(tokenizer, targets),
                text=(text,),
                dropped={},
                pieces=run.prepared.test.pieces,
            )
            found = trial.score(opened, split, between=watch(name, len(split)))
            made[name] = FurtherTest(_sha256(text), found.scores, found.hypotheses)
    return made


def _sha256(text: "Parallel") -> str:
    """Of both sides."""
    return hashlib.sha256("".join(f"{one.sha256}\n" for one in text.fingerprints()).encode()).hexdigest()
