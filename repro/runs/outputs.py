"""What stands beside the record of a run: its outputs, scores on other test sets, what its heads and search do inside.

All is written to the folder of the run, last of all, and copied from there; so the same command makes it for runs that
finished earlier. Outputs are scored again before they are published; the others are made from checkpoints. Other test
sets lie beside the text; for Multi30k others report those of 2016, 2017 and MSCOCO. What is looked inside of is the
paper's sentences, and of dev where the text is generated: most texts may not be passed on.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.corpora.catalogue import CORPORA, Corpus, GrammarSizes, open_corpus
from repro.corpora.parallel_text import languages
from repro.decoding.search import Search
from repro.paper import FIGURE_SENTENCES
from repro.results import artifacts, sentences
from repro.results.artifacts import FurtherTest, is_inside_of, read_further
from repro.results.details import SPLIT
from repro.results.record import SPLITS, Named, Record, number, path
from repro.results.sentences import SAME_SCORE, Brackets, Translated, has_brackets, has_sentences
from repro.tracking.mirror import sync
from repro.tracking.run_folder import RECORD
from repro.training.run_spec import path_of

if TYPE_CHECKING:
    from torch import Tensor

    from repro.corpora.parallel_text import Parallel
    from repro.decoding.inside import Glimpse, LookedAt
    from repro.runs.run_dir import RunDir
    from repro.tracking.client import Tracker

Say = Callable[[str], object]
# takes the name and size of a text; returns a callback that takes how many sentences are translated, and may raise
Watch = Callable[[str, int], Callable[[int], None]]

N_OWN, SHORTEST, LONGEST = 3, 8, 18  # sentences of dev, and tokens of one: as a page has room for
LEARNED = 100  # updates below which a model has nothing to show on the paper's sentences, which are long
MOST_TOKENS = 200  # of any sentence: the work grows with the square
NAMES_OF_PAPER = {"making": "the paper's figure 3", "its": "the paper's figures 4 and 5"}


# Outputs -------------------------------------------------------------------------------------------------------


def _note_outputs(run: "RunDir", record: Record) -> None:
    """The run's translations, with what its BLEU is computed from; of a run that parses, the counts of its F1."""
    place, files = run.folder / RECORD, {split: run.folder / f"{split}.hyp" for split in SPLITS}
    if artifacts.are_of(place, record.run) or not all(file.exists() for file in files.values()):
        return
    held_out = {split: getattr(run.prepared, split) for split in SPLITS}
    lines = {split: file.read_bytes().decode().split("\n")[:-1] for split, file in files.items()}
    if has_brackets(record):
        counts: dict[str, Brackets] = {split: brackets_of(lines[split], held_out[split].references) for split in SPLITS}
        sentences.write_brackets(place, record.run, counts)
        return
    known = CORPORA.get(run.corpus.name)
    splits: dict[str, Translated] = {
        split: Translated(
            lines[split],
            held_out[split].references,
            record.pair,
            in_tokens=run.corpus.in_tokens,
            source=held_out[split].source.lengths.tolist() if split == SPLIT else None,
            is_open=known is not None and known.is_generated,
        )
        for split in SPLITS
    }
    sentences.write_sentences(place, record.run, splits)


def brackets_of(outputs: Sequence[str], references: Sequence[str]) -> Brackets:
    """The counts of a parser's outputs, sentence by sentence; both sides are lines of brackets and tags.

    This is not part of the task: what a run shows besides its scores must not make it a different run.
    """
    from repro.decoding.evalb import count_brackets, n_leaves, n_words, tree_of

    gold = [tree_of(line, n_leaves(line)).tree for line in references]
    found = [tree_of(line, len(tree.leaves)) for line, tree in zip(outputs, gold, strict=True)]
    counts = [count_brackets(*pair) for pair in zip(gold, (one.tree for one in found), strict=True)]
    kinds = {kind for one in found for kind in one.kinds}
    return Brackets(
        np.array([n_words(tree) for tree in gold], np.int64),
        np.array([one.found for one in counts], np.int64),
        np.array([one.gold for one in counts], np.int64),
        np.array([one.matched for one in counts], np.int64),
        {kind: np.array([one.kinds[kind] for one in found], np.int64) for kind in kinds},
    )


def rescored(record: Record, results: Path, cache: Path) -> str | None:
    """Why the translations beside a record under `results` do not score what it says; None where they do.

    Those of other test sets that lie here count, too. Also None where its text is not at hand: then the counts that
    were kept stand in for it.
    """
    from repro.decoding.bleu import translation_scores

    if (corpus := at_hand(record, cache)) is None:
        return None
    place = path(results, record)
    kept: dict[str, tuple[list[str], Named, str]] = {
        split: (sentences.read_hypotheses(place, split), record.scores[split], "the record says")
        for split in SPLITS
        if split in artifacts.texts(place)  # of Table 3 no test is published
    }
    for name, test in read_further(place, record.run).items():
        if name in corpus.further and test.hypotheses:
            kept[name] = test.hypotheses, test.scores, "their file says"
    texts = {**corpus.further, "dev": corpus.dev, "test": corpus.test}
    for name, (hypotheses, scores, stated) in kept.items():
        references = [target for _, target in texts[name].pairs()]
        if len(hypotheses) != len(references):
            return f"{name} has {len(hypotheses):,} translations of {len(references):,} sentences"
        found = translation_scores(hypotheses, references, languages(record.pair)[1], are_tokens=corpus.in_tokens)
        for scorer in record.about["scores"]:
            scored, counted = number(scores, scorer), number(found, scorer)
            if counted is not None and (scored is None or abs(scored - counted) > SAME_SCORE):
                return f"its translations of {name} score {scorer} {counted:.4f}, but {stated} {scored}"
    return None


def at_hand(record: Record, cache: Path) -> Corpus | None:
    """The text that a run was scored on, as lines, generated or found as for a run; None if it is not here."""
    of = record.corpus
    if of["name"] not in CORPORA or not CORPORA[of["name"]].folders:  # text of one's own has no known place
        return None
    n_train = of["n_train"] + sum(of["dropped"].values())
    sizes = GrammarSizes(n_train=n_train, n_dev=of["n_dev"], n_test=of["n_test"])
    try:
        corpus = open_corpus(of["name"], record.pair, data_dir=None, cache=cache, sizes=sizes)
    except FileNotFoundError:
        return None
    # text that came in sub-words is not scored as it stands
    return corpus if corpus.sha256 == of["sha256"] and corpus.vocabulary is None else None


# What is made of the checkpoints -----------------------------------------------------------------------------------


def note_beside(run: "RunDir", record: Record, tracker: "Tracker", tell: Say, watch: Watch) -> None:
    """Write to the folder of the run what is not there yet: its outputs and, if its checkpoints are there, the others.

    Scores on other test sets also go to MLflow.
    """
    if record.status != "finished":
        return
    _note_outputs(run, record)
    place, folder, texts = run.folder / RECORD, run.folder / "checkpoints", _lacking(run, record)
    is_lacking = has_sentences(record) and not is_inside_of(place, record.run)
    has_checkpoints = all(path_of(folder, step).exists() for step in run.spec.hyper.averaged_steps)
    if not (texts or is_lacking) or not has_checkpoints:
        return
    import torch

    from repro.training import stages
    from repro.training.checkpoint import CheckpointError, averaged

    try:
        weights = averaged(folder, run.id, run.spec.hyper.averaged_steps)
    except (OSError, CheckpointError) as error:
        tell(f"{run.name} is finished. Its checkpoints in {folder} cannot be read, so nothing more is made: {error}.")
        return
    threads = torch.get_num_threads()
    stages.set_up(run.spec)  # as the process that made the run, so that numbers are the same to the bit
    try:
        if is_lacking:
            artifacts.write_inside(place, seen_inside(run, record, weights))
        if texts:
            artifacts.write_further(place, record.run, _scored(run, weights, texts, watch))
            tracker.ask(lambda: sync(tracker.uri, run.folder))  # the mirror of the training was closed with the record
    finally:
        torch.set_num_threads(threads)


# Other test sets -----------------------------------------------------------------------------------------------


def _lacking(run: "RunDir", record: Record) -> "dict[str, Parallel]":
    """The other test sets that the run was not scored on, or of which the text is another now."""
    try:
        kept = read_further(run.folder / RECORD, record.run) if run.corpus.further else {}
    except ValueError:  # it can be made again
        kept = {}
    texts = run.corpus.further.items()
    return {name: text for name, text in texts if name not in kept or kept[name].sha256 != _sha256(text)}


def _scored(
    run: "RunDir", weights: "Mapping[str, Tensor]", texts: "dict[str, Parallel]", watch: Watch
) -> dict[str, FurtherTest]:
    from repro.data.shards import Split
    from repro.runs.refused import as_ids
    from repro.training import stages

    tokenizer = run.prepared.tokenizer
    model = stages.new_module(run.spec, run.prepared).model
    model.load_state_dict(weights)
    made = {}
    with stages.opened(run.spec, model) as opened:
        for name, text in texts.items():
            sources, targets = (as_ids(tokenizer, side) for side in zip(*text.pairs(), strict=True))
            pieces = run.prepared.test.pieces
            split = Split(source=sources, target=targets, text=(text,), dropped={}, pieces=pieces)
            found = stages.score(run.spec, run.prepared, opened, split, watch(name, len(split)))
            made[name] = FurtherTest(_sha256(text), found.scores, found.hypotheses)
    return made


def _sha256(text: "Parallel") -> str:
    """The hash of both sides of a text."""
    return hashlib.sha256("".join(f"{one.sha256}\n" for one in text.fingerprints()).encode()).hexdigest()


# Inside --------------------------------------------------------------------------------------------------------


def seen_inside(run: "RunDir", record: Record, weights: "Mapping[str, Tensor]") -> bytes:
    """The file, packed: as many of the sentences as fit, and which were left out."""
    from repro.decoding.inside import look_inside
    from repro.model.build import build

    tokenizer, search = run.prepared.tokenizer, Search.of(record.settings)
    model = build(run.spec.system, run.spec.hyper, tokenizer.size).eval()
    model.load_state_dict(weights)
    kept: list[Glimpse] = []
    left_out: list[dict[str, Any]] = []

    def packed(looks: "list[Glimpse]") -> bytes:
        sentences = [look.content for look in looks]
        content = {"run": record.run, "search": search.settings, "sentences": sentences, "left_out": left_out}
        return artifacts.packed_inside(content, b"".join(look.weights for look in looks))

    for sentence in _sentences(run):
        if len(sentence.ids) <= MOST_TOKENS:
            with_it = [*kept, look_inside(model, tokenizer, sentence, search)]
            if len(packed(with_it)) <= artifacts.LARGEST:
                kept = with_it
                continue
        left_out.append({"about": sentence.about, "tokens": len(sentence.ids)})
    return packed(kept)


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
