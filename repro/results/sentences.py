"""A run's outputs, sentence by sentence, in files beside its record, and the counts that BLEU and F1 are made of.

hypothesis                     the translation as it was scored
reference                      only for generated text: that of most corpora may not be redistributed
bleu/hypothesis, /reference, /1 ... /4    without a reference: number of its tokens, of its reference's, of its correct
                               1- to 4-grams by sacreBLEU
first/..., second/..., last/...    the same, of dev: each third of the translation against that of its reference
source                         of dev: number of tokens of the source, as the model reads them
words, found, gold, right      for parsers: number of words, of brackets found, of those in the gold tree, of both
mended/<kind>                  how often the output had to be mended

Scores are functions of sums of these counts, which hold no words of the text; so anybody can compute BLEU or F1 for any
selection of sentences. Paper: section 6.1, which gives one number per system, and section 6.3.
"""

import functools
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.corpora.parallel_text import languages
from repro.results import artifacts
from repro.results.artifacts import Artifact, Column
from repro.results.record import SPLITS, TRANSLATION, Record, path

ORDERS = 4  # n-grams that BLEU counts
WHOLE, THIRDS = "bleu", ("first", "second", "last")  # of translations, as columns are named
MENDED, COLUMNS = "mended/", ("words", "found", "gold", "right")  # of brackets
SAME_SCORE = 1e-6  # sums are whole numbers, so only the last digits may differ
Ints = NDArray[np.int64]
# [S, 10] what BLEU sums over sentences: tokens of the translation and of its reference, 1- to 4-grams of the
# translation that its reference has, and all of them
Counts = NDArray[np.int32]


class Places(NamedTuple):
    """Source lengths and counts by third of translations, for scores by length and by position."""

    source: Sequence[int]  # [S] tokens of each source, as the model reads them
    thirds: Sequence[Counts]  # each third of a translation against that of its reference


class Translated(NamedTuple):
    """The translations of one split by a run."""

    hypotheses: Sequence[str]
    references: Sequence[str]
    pair: str  # "en-de"
    in_tokens: bool  # both sides are Moses tokens
    source: Sequence[int] | None = None  # [S] tokens of each source; None: not known
    is_open: bool = False  # the references may be redistributed


def bleu(sums: NDArray[Any]) -> NDArray[np.float64]:
    """BLEU [...] of sums [..., 10] as in sacreBLEU: an order without a correct n-gram is smoothed exponentially."""
    hypothesis, reference = sums[..., 0], sums[..., 1]
    correct, total = np.split(sums[..., 2:], 2, axis=-1)
    missed = correct == 0
    halved = 0.5 ** np.cumsum(missed, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(np.where(missed, halved, correct) / total)
        log_brevity = np.minimum(0.0, 1 - reference / hypothesis)
        found = 100 * np.exp(log_brevity + log_precisions.mean(axis=-1))
    return np.where((total == 0).any(axis=-1) | missed.all(axis=-1), 0.0, found)


# Counting


@functools.cache
def _cutter(name: str) -> Callable[[str], list[str]]:
    """A tokeniser of sacreBLEU, which remembers what it has cut."""
    from sacrebleu.metrics.bleu import BLEU

    tokenise = BLEU(tokenize=name).tokenizer
    return functools.lru_cache(maxsize=2**18)(lambda text: tokenise(text.rstrip()).split())


_NUMBERS: dict[str, int] = defaultdict(itertools.count().__next__)  # of the words seen so far


@functools.lru_cache(maxsize=16)  # the runs of a table have one text
def _tokens(lines: tuple[str, ...], target: str, in_tokens: bool) -> tuple[Ints, Ints]:
    """How many tokens each line has by sacreBLEU, and the numbers of all tokens."""
    from repro.decoding.bleu import plain_text, sacrebleu_tokeniser

    name = sacrebleu_tokeniser(target)
    cut, plain = _cutter(name), (plain_text(line, target) if in_tokens else line for line in lines)
    # 13a never looks beyond a blank, so each word is cut only once
    found = [[*chain.from_iterable(map(cut, of.split()))] if name == "13a" else cut(of) for of in plain]
    numbers = np.fromiter(map(_NUMBERS.__getitem__, chain.from_iterable(found)), np.int64)
    return np.array([len(of) for of in found], np.int64), numbers


def ngram_counts(
    hypotheses: Sequence[str], references: Sequence[str], target: str, *, in_tokens: bool = False, n: int = 1
) -> list[Counts]:
    """The counts by sacreBLEU of each of `n` parts of the lines, with its tokens of the language `target`.

    Part k of T tokens begins at token T k // n, and is held against the same part of the reference. `in_tokens` says
    whether both sides are Moses tokens. Raises ValueError for sides that are not parallel.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"Expected as many references as translations, {len(hypotheses):,}, got {len(references):,}.")
    sides = [_tokens(tuple(side), target, in_tokens) for side in (hypotheses, references)]
    of_line, token = (np.concatenate(of) for of in zip(*sides, strict=True))
    line, begin = np.repeat(np.arange(len(of_line)), of_line), np.arange(len(token))
    place = begin - (np.cumsum(of_line) - of_line)[line]
    part = n * line + ((place + 1) * n - 1) // of_line[line]
    lengths = np.bincount(part, minlength=n * len(of_line))
    left, m = np.cumsum(lengths)[part] - begin, n * len(hypotheses)  # a part and its reference lie m parts apart
    pair, is_theirs = part % m, part >= m
    gram, columns = pair, [lengths[:m], lengths[m:]]  # of each n-gram a number, the same for equal ones of a pair
    for k in range(ORDERS):
        # 1. the token that follows  2. new numbers  3. each counts at most as often as the reference has it
        whole = left[begin] > k
        begin = begin[whole]
        key, first, gram = np.unique(
            gram[whole] * len(_NUMBERS) + token[begin + k], return_index=True, return_inverse=True
        )
        ours, theirs = (np.bincount(gram[is_theirs[begin] == side], minlength=len(key)) for side in (False, True))
        columns.append(np.bincount(pair[begin[first]], np.minimum(ours, theirs), m).astype(np.int64))
    counts = _counts(np.column_stack(columns))
    return [counts[k::n] for k in range(n)]


def _counts(six: Ints) -> Counts:
    """The counts as BLEU sums them: how many n-grams there are follows from the number of tokens."""
    return np.concatenate([six, np.maximum(six[:, :1] - np.arange(ORDERS), 0)], axis=1).astype(np.int32)


# Files


def has_sentences(record: Record) -> bool:
    """Whether a run has translations to keep: finished, and scored by BLEU."""
    return record.status == "finished" and record.about == TRANSLATION


def write_sentences(place: Path, run: str, splits: Mapping[str, Translated]) -> None:
    """Write the sentences of a run beside its record at `place`."""
    for split, of in splits.items():
        columns: dict[str, Column] = {"hypothesis": list(of.hypotheses)}
        if of.source is not None:
            columns["source"] = np.asarray(of.source, np.int64)
        if of.is_open and not of.in_tokens:
            columns["reference"] = list(of.references)
        else:
            sides = of.hypotheses, of.references, languages(of.pair)[1]
            for parts in [(WHOLE,)] if of.source is None else [(WHOLE,), THIRDS]:
                counted = ngram_counts(*sides, in_tokens=of.in_tokens, n=len(parts))
                for name, counts in zip(parts, counted, strict=True):
                    columns |= zip(_names(name), counts.T[: 2 + ORDERS].astype(np.int64), strict=True)
        artifacts.write(place, split, Artifact({"run": run, "hypotheses": sha256_of(of.hypotheses)}, columns))


def read_hypotheses(place: Path, split: str) -> list[str]:
    """The translations of one split. Raises FileNotFoundError where there are none."""
    if (found := artifacts.read(place, split, ["hypothesis"])) is None or not found.columns:
        raise FileNotFoundError(f"{place}: expected translations of {split} beside it, found none. {artifacts.AGAIN}")
    return [*map(str, found.columns["hypothesis"])]


def read_counts(results: Path, record: Record, split: str = "dev") -> Counts | None:
    """The counts of a run's translations, from beside its record under `results`; None where it has none.

    Those of test are not published for all tables. Raises ValueError if they are of another run, have another number of
    sentences, or give another BLEU than the record's.
    """
    scored = record.score(split, WHOLE)
    if scored is None or not has_sentences(record) or not (found := _parts(results, record, split, (WHOLE,))):
        return None
    if abs(scored - (counted := bleu(found[0].sum(0)).item())) > SAME_SCORE:
        expected = f"expected counts that give the record's BLEU of {scored}, got {counted}"
        raise ValueError(f"{path(results, record)}: {split}: {expected}")
    return found[0]


def read_places(results: Path, record: Record, split: str) -> Places | None:
    """Source lengths and thirds of one split; None where a run has none. Raises ValueError as `read_counts`."""
    found = artifacts.read(path(results, record), split, ["source"], run=record.run, n=record.n_sentences(split))
    parts = _parts(results, record, split, THIRDS) if found and found.columns else None
    return Places([*map(int, found.columns["source"])], parts) if found and parts else None


def faults(results: Path, record: Record, splits: Sequence[str] = SPLITS) -> Iterator[str]:
    """Why the files beside a record do not match its scores; nothing where they match or are not needed."""
    place = path(results, record)
    try:
        if has_brackets(record) and read_brackets(results, record) is None:
            yield "its brackets of dev and test are missing"
        missing = [split for split in splits if has_sentences(record) and split not in artifacts.texts(place)]
        if missing:
            yield f"its translations of {' and '.join(missing)} are missing"
        for split in splits if has_sentences(record) and not missing else ():
            read_counts(results, record, split)  # which compares with the record, as `read_brackets` does
            found = artifacts.read(place, split)
            if found and sha256_of([*map(str, found.columns["hypothesis"])]) != found.about["hypotheses"]:
                yield f"other translations of {split} stand beside it than were scored"
    except ValueError as error:
        yield str(error)


def sha256_of(lines: Sequence[str]) -> str:
    """SHA-256 of a text as written to a file."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _parts(results: Path, record: Record, split: str, parts: tuple[str, ...]) -> Sequence[Counts] | None:
    """The counts of whole translations, or of their thirds; None where there are none."""
    place, target = path(results, record), languages(record.pair)[1]
    return _parts_once(
        place, split, artifacts.state(place, split), record.run, record.n_sentences(split), target, parts
    )


@functools.lru_cache(maxsize=4096)  # claims, statements and charts of a report read the same thousand runs
def _parts_once(
    place: Path, split: str, _state: object, run: str, n: int, target: str, parts: tuple[str, ...]
) -> Sequence[Counts] | None:
    names = [name for part in parts for name in _names(part)]
    found = artifacts.read(place, split, ["hypothesis", "reference", *names], run=run, n=n)
    if found and "reference" in found.columns:
        hypotheses, references = ([*map(str, found.columns[name])] for name in ("hypothesis", "reference"))
        return ngram_counts(hypotheses, references, target, n=len(parts))
    if not found or names[0] not in found.columns:
        return None
    return [
        _counts(np.column_stack([np.asarray(found.columns[name], np.int64) for name in _names(part)])) for part in parts
    ]


def _names(of: str) -> list[str]:
    """The names of the columns with the counts of whole translations, or of a third."""
    return [f"{of}/{what}" for what in ("hypothesis", "reference", *range(1, ORDERS + 1))]


# Brackets


class Brackets(NamedTuple):
    """The counts of S sentences, in the order of the text."""

    words: NDArray[np.int64]  # [S] in the sentence
    found: NDArray[np.int64]  # [S] in the tree that was found, brackets that count
    gold: NDArray[np.int64]  # [S] in the gold tree
    right: NDArray[np.int64]  # [S] in both
    mended: Mapping[str, NDArray[np.int64]]  # by kind, [S]: how often; all zero for an output that was a tree

    @property
    def was_no_tree(self) -> NDArray[np.bool_]:
        """[S] whether anything had to be mended."""
        return np.any([self.words < 0, *(times > 0 for times in self.mended.values())], axis=0)

    def scores(self) -> dict[str, float]:
        """The scores of all sentences in per cent, by the names that a record uses."""
        found, gold, right = (int(part.sum()) for part in (self.found, self.gold, self.right))
        exact = (self.right == self.found) & (self.right == self.gold)
        return {
            "f1": f1(found, gold, right),
            "precision": _percent(right, found),
            "recall": _percent(right, gold),
            "exact": _percent(int(exact.sum()), len(exact)),
            "mended": _percent(int(self.was_no_tree.sum()), len(exact)),
        }

    def by_length(self, n: int = 3) -> list[float]:
        """F1 of n parts of a text, sorted by sentence length, the shortest first; equal ones stay in text order."""
        order = np.argsort(self.words, kind="stable")
        return [
            f1(*(int(column[part].sum()) for column in (self.found, self.gold, self.right)))
            for part in np.array_split(order, n)
        ]


def f1(found: int, gold: int, right: int) -> float:
    """F1 in per cent, the harmonic mean of precision and recall; `right` are the brackets in both."""
    return _percent(2 * right, found + gold)


def has_brackets(record: Record) -> bool:
    """Whether a run has brackets to keep: finished, and scored by F1."""
    return record.status == "finished" and "f1" in record.about["scores"]


def write_brackets(place: Path, run: str, splits: Mapping[str, Brackets]) -> None:
    """Write the brackets of a run beside its record at `place`."""
    for split, of in splits.items():
        mended = {f"{MENDED}{kind}": times for kind, times in of.mended.items()}
        columns = {name: getattr(of, name) for name in COLUMNS} | mended
        artifacts.write(place, split, Artifact({"run": run}, columns))


def read_brackets(results: Path, record: Record) -> dict[str, Brackets] | None:
    """The brackets of a run by split, from beside its record under `results`; None where there are none.

    Raises ValueError if they are of another run, have another number of sentences, or give other scores than the
    record's.
    """
    place, made = path(results, record), dict[str, Brackets]()
    for split in SPLITS:
        found = artifacts.read(place, split, run=record.run, n=record.n_sentences(split))
        if found is None or COLUMNS[0] not in found.columns:
            return None
        columns = {name: np.asarray(column, np.int64) for name, column in found.columns.items()}
        mended = {name.removeprefix(MENDED): times for name, times in columns.items() if name.startswith(MENDED)}
        words, brackets, gold, right = (columns[name] for name in COLUMNS)
        made[split] = Brackets(words, brackets, gold, right, mended)
        for name, counted in made[split].scores().items():
            scored = record.score(split, name)
            if scored is None or abs(scored - counted) > SAME_SCORE:
                expected = f"expected brackets that give the record's {name} of {scored}, got {counted}"
                raise ValueError(f"{place}: {split}: {expected}. {artifacts.AGAIN}")
    return made


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
