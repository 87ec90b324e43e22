"""What a finished run does inside: its heads and its search on a few sentences, written beside its record.

The process that makes the run writes this last: there the model's libraries are loaded, and one thread is at work. It
is made from the checkpoints of the run, so the same command writes it for runs that finished earlier. The sentences are
the paper's, and of dev where the text is generated: the text of most corpora may not be passed on.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.corpora.catalogue import CORPORA
from repro.corpora.pair import languages
from repro.decoding.search import Search
from repro.paper import FIGURE_SENTENCES
from repro.results.inside import LARGEST, copy_inside, is_inside_of, packed_inside, write_inside
from repro.results.record import Record, path
from repro.results.sentences import has_sentences
from repro.runs.afterwards import Say, as_trained, has_checkpoints, kept_weights
from repro.tracking.run_folder import RECORD

if TYPE_CHECKING:
    from torch import Tensor

    from repro.decoding.inside import Glimpse, LookedAt
    from repro.runs.run_dir import RunDir

N_OWN, SHORTEST, LONGEST = 3, 8, 18  # sentences of dev, and tokens of one: as a page has room for
LEARNED = 100  # updates below which a model has nothing to show on the paper's sentences, which are long
MOST_TOKENS = 200  # of any sentence: the work grows with the square
NAMES_OF_PAPER = {"making": "the paper's figure 3", "its": "the paper's figures 4 and 5"}


def note_inside(run: "RunDir", record: Record, tell: Say) -> None:
    """Write what the run does inside to its folder, if it translates and its checkpoints are there."""
    place = run.folder / RECORD
    wanted = has_checkpoints(run) and has_sentences(record) and not is_inside_of(place, record.run)
    if wanted and (weights := kept_weights(run, tell)) is not None:
        with as_trained(run):
            write_inside(place, seen_inside(run, record, weights))


def keep_inside(run: "RunDir", record: Record, results: Path, tell: Say) -> None:
    """Do the same, and copy the file beside the record under `results`; if it cannot be made, none stays there."""
    place = path(results, record)
    if not is_inside_of(place, record.run):
        note_inside(run, record, tell)
        copy_inside(run.folder / RECORD, place, record.run)


def seen_inside(run: "RunDir", record: Record, weights: "Mapping[str, Tensor]") -> bytes:
    """The file, packed: as many of the sentences as fit, and which were left out."""
    from repro.decoding.inside import look_inside
    from repro.model.build import build

    tokenizer = run.prepared.tokenizer
    model = build(run.spec.system, run.spec.hyper, tokenizer.size).eval()
    model.load_state_dict(weights)
    search = Search.of(record.settings)
    kept: list[Glimpse] = []
    left_out: list[dict[str, Any]] = []
    packed = _packed(kept, left_out, record, search)
    for sentence in _sentences(run):
        fits = len(sentence.ids) <= MOST_TOKENS
        with_it = [*kept, look_inside(model, tokenizer, sentence, search)] if fits else kept
        if fits and len(tried := _packed(with_it, left_out, record, search)) <= LARGEST:
            kept, packed = with_it, tried
        else:
            left_out.append({"about": sentence.about, "tokens": len(sentence.ids)})
            packed = _packed(kept, left_out, record, search)
    return packed


def _packed(looks: "list[Glimpse]", left_out: list[dict[str, Any]], record: Record, search: Search) -> bytes:
    content = {
        "run": record.run,
        "search": search.settings,
        "sentences": [look.content for look in looks],
        "left_out": left_out,
    }
    return packed_inside(content, b"".join(look.weights for look in looks))


def _sentences(run: "RunDir") -> "Iterator[LookedAt]":
    """What is looked at, the most wanted first."""
    from repro.decoding.inside import LookedAt

    if run.corpus.name in CORPORA and CORPORA[run.corpus.name].is_generated:
        source = run.prepared.dev.source
        lengths = np.asarray(source.lengths)
        fitting = np.flatnonzero((lengths >= SHORTEST) & (lengths <= LONGEST)).tolist()
        places = [(2 * k + 1) * len(fitting) // (2 * N_OWN) for k in range(N_OWN if fitting else 0)]
        for line in dict.fromkeys(fitting[place] for place in places):
            yield LookedAt(f"line {line + 1} of dev", [int(id) for id in source.sentence(line)])
    is_english = languages(run.task.name)[0] == "en" and not run.corpus.in_tokens
    if is_english and run.spec.hyper.steps >= LEARNED:
        for name, text in FIGURE_SENTENCES.items():
            ids, _ = run.prepared.tokenizer.encode([text])
            yield LookedAt(NAMES_OF_PAPER[name], [int(id) for id in ids])
