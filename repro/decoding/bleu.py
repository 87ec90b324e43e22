"""BLEU by two scorers, always with a signature. Paper: section 6.1, which does not say how it scored.

Different scorers give the same translations different numbers. Use `sacrebleu_score` to compare with other work,
and `published_score`, which is some tenths to a whole point higher, to compare with the paper's tables.

Text may already be Moses tokens, with escapes (`&quot;` for a quotation mark). Tokenised again, each escape would be
three tokens, most of them right by chance. So both sides are unescaped. `published_score` then counts the tokens as
they are; sacreBLEU has its own tokeniser, so for it they are joined to plain text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version

import regex
from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from repro.data.vocabulary import tokeniser_of
from repro.decoding.search import Named

LANGUAGES = ("de", "en", "fr")  # the paper's

PUNCTUATION = MosesPunctNormalizer()  # only its port of replace-unicode-punctuation.perl is used
LOW_QUOTE = str.maketrans("„", '"')
# Moses' deescape-special-chars.perl; "bar", "bra" and "ket" come from its older versions
ESCAPES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "#91": "[", "#93": "]", "#124": "|", "amp": "&"} | {
    "bar": "|",
    "bra": "[",
    "ket": "]",
}
ESCAPE = re.compile(f"&({'|'.join(ESCAPES)});")
# a mark inside a word: from Moses' own option to split compounds (also in WikiText numbers), or the authors' script
INSIDE = re.compile(r" (?:@([^\w\s])@|##AT##(-)##AT##) ")


@dataclass(frozen=True)
class Score:
    """A BLEU score and the numbers it is computed from."""

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

    With `are_tokens` both sides are Moses tokens, which are first joined to plain text.
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
    """The scores of `sacrebleu_score`, and of `published_score` if it is defined for the language; same arguments."""
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
    """sacreBLEU's tokeniser for a target language: 13a for languages with blanks between words."""
    return tokeniser_of(language) or "13a"


def published_protocol(language: str) -> str | None:
    """None if translations into the language can be scored as published, else the reason why not, in words."""
    if _rules(language) in LANGUAGES:
        return None
    return (
        f"no published protocol for {language!r}: the authors' script knows {', '.join(LANGUAGES)}, and Moses would "
        "take any other language for English"
    )


def published_score(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, are_tokens: bool = False
) -> Score:
    """BLEU of plain text as the authors' script computes it: `multi-bleu` of Moses tokens with compounds split.

    Case counts and nothing is smoothed: if no 4-gram matches, BLEU is 0, as in `multi-bleu`. Only for languages
    with a `published_protocol`. With `are_tokens` both sides are Moses tokens and are not tokenised again.
    """
    cut = given_tokens if are_tokens else published_tokens
    multi_bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    score = _score(multi_bleu, *([cut(line, language) for line in side] for side in (hypotheses, references)))
    cutter = "given-unescaped" if are_tokens else f"moses-{_rules(language)}-sacremoses-{version('sacremoses')}"
    steps = f"nrefs:1|case:mixed|punct:replace-unicode+low-quote|tok:{cutter}|split:compounds|smooth:none"
    return replace(score, signature=f"BLEU|{steps}|version:{version('sacrebleu')}")


def published_tokens(line: str, language: str) -> str:
    """Tokenise a line as the authors did, with spaces between tokens: get_ende_bleu.sh of their first release.

    Their script replaces Unicode punctuation in the hypotheses; in the reference they had done so by hand,
    low quotes included (tensorflow/tensor2tensor#317). Here all steps are applied to both sides.
    """
    line = PUNCTUATION.replace_unicode_punct(line).translate(LOW_QUOTE)
    line = _moses(language).tokenize(line, return_str=True, escape=False)
    return split_compounds(line)


def given_tokens(tokens: str, language: str) -> str:
    """The same for a line of Moses tokens: only compounds are split, and only by the authors' rule."""
    _refuse_unpublished(language)
    line = PUNCTUATION.replace_unicode_punct(unescaped(tokens)).translate(LOW_QUOTE)
    return split_compounds(line)


def plain_text(tokens: str, language: str) -> str:
    """Moses tokens joined to the line that they came from, as far as it can be recovered."""
    joined: str = _joiner(_joining(language)).detokenize(unescaped(tokens).split(), unescape=False)
    return joined


def unescaped(tokens: str) -> str:
    """Moses tokens without escapes and with compounds joined; in one pass, as `&amp;lt;` stands for `&lt;`."""
    return INSIDE.sub(lambda found: found[1] or found[2], ESCAPE.sub(lambda found: ESCAPES[found[1]], tokens))


def split_compounds(line: str) -> str:
    """`rich-text` becomes `rich ##AT##-##AT## text`.

    It works on bytes, as the script's Perl does. A match consumes a byte on either side, so `1-0-1` is split
    once and `ä-ö-ü`, with two bytes a letter, twice. Moses' aggressive splitting, not used here, splits both twice.
    """
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", line.encode("utf-8")).decode("utf-8")


@cache
def _moses(language: str) -> MosesTokenizer:
    """Moses' tokenizer.perl. The port has a list of Unicode letters that lacks Han and Hangul, among others.

    A letter outside the list would be cut out of its word as a token of its own. Perl's IsAlnum has all letters.
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
    """The language whose rules apply to a tag: de for de-AT."""
    return language.split("-")[0]


def _joining(language: str) -> str:
    """The rules for joining tokens: the language's own for the paper's languages, general ones for all others."""
    return _rules(language) if published_protocol(language) is None else "any"


def _score(metric: BLEU, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The score with the metric's own signature. Its `force` only silences the warning that text looks tokenised."""
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
