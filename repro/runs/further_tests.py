"""Scores of a finished run on the other test sets that lie beside its text, made as those of its own test set.

They come after the record, which does not need them, and are made from the checkpoints of the run. So the same command
makes them for runs that finished earlier, or before the other test sets were there. Paper: none; for Multi30k others
report test sets of 2016 and 2017, and of MSCOCO.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from repro.results import artifacts
from repro.results.further_tests import FurtherTest, read_further, write_further
from repro.results.record import Record, path
from repro.runs.afterwards import Say, as_trained, has_checkpoints, kept_weights
from repro.tracking.mirror import sync
from repro.tracking.run_folder import RECORD

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from repro.corpora.parallel_text import Parallel
    from repro.runs.run_dir import RunDir
    from repro.tracking.tracker import Tracker

# takes the name and size of a text; returns a callback that takes how many sentences are translated, and may raise
Watch = Callable[[str, int], Callable[[int], None]]


def note_further(run: "RunDir", record: Record, tracker: "Tracker", tell: Say, watch: Watch) -> None:
    """Write the scores to the folder of the run and to MLflow, if its checkpoints are there.

    Scores that are there are not made again.
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
        tracker.ask(lambda: sync(tracker.uri, run.folder))  # the mirror of the training was closed with the record


def keep_further(run: "RunDir", record: Record, results: "Path", tracker: "Tracker", tell: Say, watch: Watch) -> None:
    """Do the same, and copy the scores beside the record under `results`."""
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
    """The hash of both sides of a text."""
    return hashlib.sha256("".join(f"{one.sha256}\n" for one in text.fingerprints()).encode()).hexdigest()
