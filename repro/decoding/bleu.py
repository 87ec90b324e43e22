"""BLEU by two scorers, never without a signature. Paper: section 6.1, which does not say how it scored.

The same translations are worth different numbers to different scorers. `sacrebleu_score` is the one to
compare with others by; `published_score`, some tenths to a whole point above it, the one to hold against
the paper's tables.

Text may come as Moses tokens already, with their escapes (`&quot;` for a quotation mark). Cut again, those would be
three tokens each, most of them right by chance: so both sides are unescaped, and then counted as they are cut or, for
sacreBLEU, which cuts for itself, joined to plain text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version

import regex
from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from repro.data.unspaced import tokeniser_of
from repro.decoding.search import Named

LANGUAGES = ("de", "en", "fr")  # the paper's

PUNCTUATION = MosesPunctNormalizer()  # of it only the part that is replace-unicode-punctuation.perl
LOW_QUOTE = str.maketrans("„", '"')
# Moses' deescape-special-chars.perl; "bar", "bra" and "ket" are of its older versions
ESCAPES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "#91": "[", "#93": "]", "#124": "|", "amp": "&"} | {
    "bar": "|",
    "bra": "[",
    "ket": "]",
}
ESCAPE = re.compile(f"&({'|'.join(ESCAPES)});")
# a mark inside a word, where Moses was told to cut compounds itself (and WikiText numbers), or the authors' script did
INSIDE = re.compile(r" (?:@([^\w\s])@|##AT##(-)##AT##) ")


@dataclass(frozen=True)
class Score:
    """A BLEU score and what it was made of."""

    bleu: float  # 0 to 100
    signature: str  # every step and version that decides the number
    precisions: tuple[float, ...]  # of 1- to 4-grams, 0 to 100
    bp: float  # brevity penalty
    hyp_len: int  # tokens of the hypotheses
    ref_len: int  # tokens of the references


def sacrebleu_score(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, are_tokens: bool = False
) -> Score:
    """sacreBLEU of plain text: the tokeniser of the target language, mixed case, exponential smoothing.

    With `are_tokens` both sides are Moses tokens, and are made plain text first.
    """
    scorer = BLEU(tokenize=sacrebleu_tokeniser(language), smooth_method="exp", force=True)
    if not are_tokens:
        return _score(scorer, hypotheses, references)
    score = _score(scorer, *([plain_text(line, language) for line in side] for side in (hypotheses, references)))
    joined = f"|detok:moses-{_joining(language)}-sacremoses-{version('sacremoses')}|tok:"
    return replace(score, signature=score.signature.replace("|tok:", joined))


def translation_scores(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, are_tokens: bool
) -> Named:
    """By sacreBLEU, and as the paper's authors took it, where that is defined; arguments are those of both."""
    plain = sacrebleu_score(hypotheses, references, language, are_tokens=are_tokens)
    published = None
    if published_protocol(language) is None:
        published = published_score(hypotheses, references, language, are_tokens=are_tokens)
    return {
        "bleu": plain.bleu,
        "bleu_signature": plain.signature,
        "bleu_published": published.bleu if published else None,
        "bleu_published_signature": published.signature if published else None,
    }


def sacrebleu_tokeniser(language: str) -> str:
    """The tokeniser by which sacreBLEU counts a target language: 13a where blanks stand between words."""
    return tokeniser_of(language) or "13a"


def published_protocol(language: str) -> str | None:
    """None where translations into the language can be scored as published, else in words why they cannot."""
    if _rules(language) in LANGUAGES:
        return None
    return (
        f"no published protocol for {language!r}: the authors' script knows {', '.join(LANGUAGES)}, and Moses would "
        "take any other language for English"
    )


def published_score(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, are_tokens: bool = False
) -> Score:
    """BLEU of plain text as the authors' script has it: `multi-bleu` of Moses tokens with compounds split.

    Case counts and nothing is smoothed: where no 4-gram matches, BLEU is 0, as `multi-bleu` has it. Only for
    languages that have a `published_protocol`. With `are_tokens` both sides are Moses tokens and are not cut again.
    """
    cut = given_tokens if are_tokens else published_tokens
    multi_bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    score = _score(multi_bleu, *([cut(line, language) for line in side] for side in (hypotheses, references)))
    cutter = "given-unescaped" if are_tokens else f"moses-{_rules(language)}-sacremoses-{version('sacremoses')}"
    steps = f"nrefs:1|case:mixed|punct:replace-unicode+low-quote|tok:{cutter}|split:compounds|smooth:none"
    return replace(score, signature=f"BLEU|{steps}|version:{version('sacrebleu')}")


def published_tokens(line: str, language: str) -> str:
    """The line as the authors counted it, tokens between spaces: get_ende_bleu.sh of their first release.

    Their script replaces Unicode punctuation in the hypotheses; in the reference they had done so by hand,
    low quotes included (tensorflow/tensor2tensor#317). Here both sides go through all of it.
    """
    line = PUNCTUATION.replace_unicode_punct(line).translate(LOW_QUOTE)
    line = _moses(language).tokenize(line, return_str=True, escape=False)
    return split_compounds(line)


def given_tokens(tokens: str, language: str) -> str:
    """The same of a line that is Moses tokens: nothing is cut but compounds, and those by the authors' rule alone."""
    _refuse_unpublished(language)
    line = PUNCTUATION.replace_unicode_punct(unescaped(tokens)).translate(LOW_QUOTE)
    return split_compounds(line)


def plain_text(tokens: str, language: str) -> str:
    """Moses tokens as the line that they were cut from, as far as can be told."""
    joined: str = _joiner(_joining(language)).detokenize(unescaped(tokens).split(), unescape=False)
    return joined


def unescaped(tokens: str) -> str:
    """Moses tokens without its escapes, in one pass, for `&amp;lt;` was written `&lt;`; and with compounds whole."""
    return INSIDE.sub(lambda found: found[1] or found[2], ESCAPE.sub(lambda found: ESCAPES[found[1]], tokens))


def split_compounds(line: str) -> str:
    """`rich-text` becomes `rich ##AT##-##AT## text`.

    In bytes, as the script's Perl reads: a match uses up a byte on either side, so that `1-0-1` is split
    once and `ä-ö-ü`, of two bytes a letter, twice. Not Moses' aggressive splitting, which would take both.
    """
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode("utf-8")).decode("utf-8")


@cache
def _moses(language: str) -> MosesTokenizer:
    """Moses' tokenizer.perl. Its port lists the letters of Unicode and leaves out Han and Hangul, among others.

    A letter that is not listed would stand for itself, cut out of its word: Perl's IsAlnum has them all.
    """
    _refuse_unpublished(language)
    tokenizer = MosesTokenizer(_rules(language))
    tokenizer.PAD_NOT_ISALNUM = (regex.compile(r"([^\p{Alphabetic}\p{Nd}\s.'`,\-])"), r" \1 ")
    return tokenizer


@cache
def _joiner(language: str) -> MosesDetokenizer:
    return MosesDetokenizer(language)


def _refuse_unpublished(language: str) -> None:
    if reason := published_protocol(language):
        raise ValueError(f"Expected a language with a published protocol, got one without: {reason}.")


def _rules(language: str) -> str:
    """The language whose rules a tag such as de-AT goes by."""
    return language.split("-")[0]


def _joining(language: str) -> str:
    """The rules by which tokens are joined: beyond the paper's languages those that hold for any."""
    return _rules(language) if published_protocol(language) is None else "any"


def _score(metric: BLEU, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Score, signed by the metric itself. Its `force` only silences a guess that the text is tokenised."""
    if len(hypotheses) != len(references):
        raise ValueError(
            f"expected one hypothesis for each reference, got {len(hypotheses)} for {len(references)}: "
            "the two must be parallel."
        )
    if not references:
        raise ValueError("expected at least one hypothesis and its reference, got none: the split is empty.")
    found = metric.corpus_score(hypotheses, [references])
    return Score(
        bleu=found.score,
        signature=f"BLEU|{metric.get_signature()}",
        precisions=tuple(found.precisions),
        bp=found.bp,
        hyp_len=found.sys_len,
        ref_len=found.ref_len,
    )
