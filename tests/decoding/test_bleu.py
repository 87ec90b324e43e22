"""Both scorers against golden files, published outputs, an own count of n-grams and the script's Perl."""

import gzip
import math
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from repro.decoding.bleu import (
    Score,
    given_tokens,
    plain_text,
    published_protocol,
    published_score,
    published_tokens,
    sacrebleu_score,
    split_compounds,
)

GOLDEN = Path(__file__).parent / "golden"  # 60 sentences of ours in German, 60 in French, and poorer versions
AT = "##AT##-##AT##"
SCORERS: dict[str, Callable[[list[str], list[str]], Score]] = {
    "sacrebleu": lambda hypotheses, references: sacrebleu_score(hypotheses, references, "de"),
    "published": lambda hypotheses, references: published_score(hypotheses, references, "de"),
}


def read(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").split("\n")[:-1]


# Pinned; the published scores agree with the original Perl scripts run over these files to all four decimals.
@pytest.mark.parametrize(
    ("language", "sacre", "published", "lengths"),
    [("de", 67.5295, 70.8460, (662, 687)), ("fr", 70.2992, 72.3837, (764, 790))],
)
def test_golden_files(language: str, sacre: float, published: float, lengths: tuple[int, int]) -> None:
    hypotheses, references = read(GOLDEN / f"hyp.{language}"), read(GOLDEN / f"ref.{language}")
    assert len(hypotheses) == len(references) == 60
    assert sacrebleu_score(hypotheses, references, language).bleu == pytest.approx(sacre, abs=5e-5)
    score = published_score(hypotheses, references, language)
    assert score.bleu == pytest.approx(published, abs=5e-5)
    assert (score.hyp_len, score.ref_len) == lengths


def test_by_hand() -> None:
    # 6 words for 7, the first 5 right
    hypotheses, references = ["der Hund schläft unter dem Baum"], ["der Hund schläft unter dem alten Tisch"]
    score = published_score(hypotheses, references, "de")
    assert score.precisions == pytest.approx((100 * 5 / 6, 100 * 4 / 5, 100 * 3 / 4, 100 * 2 / 3))
    assert (score.hyp_len, score.ref_len) == (6, 7)
    assert score.bp == pytest.approx(math.exp(-1 / 6))
    assert score.bleu == pytest.approx(100 * math.exp(-1 / 6) * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)


def test_signatures_name_every_step_and_version() -> None:
    pair, end = (["ein Satz"], ["ein Wort"]), f"version:{version('sacrebleu')}"
    assert sacrebleu_score(*pair, "fr").signature == f"BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{end}"
    assert published_score(*pair, "fr").signature == (
        "BLEU|nrefs:1|case:mixed|punct:replace-unicode+low-quote"
        f"|tok:moses-fr-sacremoses-{version('sacremoses')}|split:compounds|smooth:none|{end}"
    )


@pytest.mark.parametrize(
    ("language", "hypothesis", "reference", "tokeniser", "precisions"),
    [
        # 13a takes each of these sentences for one or two words
        ("zh", "我喜欢狗。", "我喜欢猫。", "zh", (4 / 5, 2 / 4, 1 / 3, 1 / 4)),  # of 2 four-grams none: half of one
        ("zh-Hant-TW", "我喜歡 Linux。", "我喜歡 Linux！", "zh", (4 / 5, 3 / 4, 2 / 3, 1 / 2)),
        *((tag, "我喜欢狗。", "我喜欢狗。", "zh", (1, 1, 1, 1)) for tag in ("cmn", "zho_Hans", "ZH")),
        *((tag, "犬が好き", "猫が好き", "char", (3 / 4, 2 / 3, 1 / 2, 1 / 2)) for tag in ("jpn_Jpan", "shn")),
        ("ja", "犬が好き", "猫が好き", "char", (3 / 4, 2 / 3, 1 / 2, 1 / 2)),
        ("th", "หมา ดี", "หมา ดำ", "char", (4 / 5, 3 / 4, 2 / 3, 1 / 2)),
        ("de", "Ich mag Hunde.", "Ich mag Katzen.", "13a", (3 / 4, 1 / 3, 1 / 4, 1 / 4)),
    ],
)
def test_the_tokeniser_is_that_of_the_target_language(
    language: str, hypothesis: str, reference: str, tokeniser: str, precisions: tuple[float, ...]
) -> None:
    score = sacrebleu_score([hypothesis], [reference], language)
    assert score.precisions == pytest.approx([100 * one for one in precisions])
    assert f"|tok:{tokeniser}|smooth:exp|" in score.signature


@pytest.mark.parametrize(("scorer", "bleu"), [("sacrebleu", 19.3049), ("published", 0.0)])
def test_only_sacrebleu_smooths_what_never_matches(scorer: str, bleu: float) -> None:
    score = SCORERS[scorer](["a x b y c d"], ["a b c d e f"])  # 4/6, 1/5, 0/4, 0/3: the zeros as 1/8, 1/12
    assert score.bleu == pytest.approx(bleu, abs=5e-5)


@pytest.mark.parametrize("scorer", SCORERS)
def test_translations_may_be_empty_but_sides_must_match(scorer: str) -> None:
    assert SCORERS[scorer](["", ""], ["ein Satz", "noch einer"]).bleu == 0
    with pytest.raises(ValueError, match="got 2 for 3: the two must be parallel"):
        SCORERS[scorer](["a", "b"], ["a", "b", "c"])
    with pytest.raises(ValueError, match="at least one hypothesis"):
        SCORERS[scorer]([], [])


@pytest.mark.parametrize("language", ["es", "xx", "zh-Hans", "ende", ""])
def test_a_language_without_a_protocol_says_so_and_is_refused(language: str) -> None:
    reason = published_protocol(language)
    assert reason == (
        f"no published protocol for {language!r}: the authors' script knows de, en, fr, and Moses would take any "
        "other language for English"
    )
    with pytest.raises(ValueError, match=re.escape(reason)):
        published_score(["a"], ["a"], language)


@pytest.mark.parametrize("language", ["de", "en", "fr", "fr-CA"])
def test_a_language_of_the_paper_has_a_protocol(language: str) -> None:
    assert published_protocol(language) is None
    line = ["L'élève dit: peut-être."]
    of_language = [published_score(line, ["L'élève dit: non."], one) for one in (language, language[:2])]
    assert of_language[0] == of_language[1]  # a tag goes by the rules of its language


# A dash between two characters that are not blank; each match uses up a byte on either side, as in Perl.
COMPOUNDS = {
    "rich-text format": f"rich {AT} text format",
    "a-b-c": f"a {AT} b-c",
    "a-b-c-d": f"a {AT} b-c {AT} d",
    "ab-cd-ef": f"ab {AT} cd {AT} ef",
    "ä-ö-ü": f"ä {AT} ö {AT} ü",  # two bytes each: one is left for the second dash
    "a-ö-c": f"a {AT} ö {AT} c",
    "là-bas": f"là {AT} bas",  # the last byte of à would be a no-break space in Latin-1
    "Å-Band": f"Å {AT} Band",  # and that of Å a line end
    "a--b": f"a {AT} -b",
    "a---b": f"a {AT} --b",
    "- a - b -": "- a - b -",
    "-a b-": "-a b-",
    "a –b": "a –b",
    "2014-07-13": f"2014 {AT} 07 {AT} 13",
    "\u00a0-\u00a0": f"\u00a0 {AT} \u00a0",
    "": "",
}


@pytest.mark.parametrize("line", COMPOUNDS)
def test_compounds_are_split(line: str) -> None:
    assert split_compounds(line) == COMPOUNDS[line]


@pytest.mark.skipif(shutil.which("perl") is None, reason="needs perl, to ask what the script's own line does")
def test_compounds_are_split_as_perl_splits_them() -> None:
    lines = [*COMPOUNDS, *(line for path in sorted(GOLDEN.iterdir()) for line in read(path))]
    command = [str(shutil.which("perl")), "-ple", r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"]
    given = "".join(f"{line}\n" for line in lines).encode()
    written = subprocess.run(command, input=given, capture_output=True, check=True, env={}).stdout
    assert [split_compounds(line) for line in lines] == written.decode("utf-8").split("\n")[:-1]


@pytest.mark.parametrize(
    ("language", "line", "tokens"),
    [
        ("de", "„Komm“, sagte sie …", '" Komm " , sagte sie ...'),
        ("de", "Dr. Lindner zahlt 1.249,90 Euro.", "Dr. Lindner zahlt 1.249,90 Euro ."),
        ("de", "Die E-Mail-Adresse & das <b>.", f"Die E {AT} Mail {AT} Adresse & das < b > ."),
        ("fr", "L’élève n'a pas peur.", "L' élève n' a pas peur ."),
        ("en", "It's Tom's half-open door.", f"It 's Tom 's half {AT} open door ."),
        ("fr", "Qui\u00a0?", "Qui ?"),
        ("de", "Die Firma东京AG (x) und a한b", "Die Firma东京AG ( x ) und a한b"),
        ("fr", "Il𠀀y नहीं ①", "Il𠀀y नहीं ①"),
    ],
)
def test_published_tokens(language: str, line: str, tokens: str) -> None:
    assert published_tokens(line, language) == tokens


def test_letters_and_digits_of_every_script_stay_in_their_words() -> None:
    # as Moses' own script has them, by Perl's IsAlnum: U+FF10 to U+FF19 are the digits that it makes plain ones
    letters = [chr(i) for i in range(0x110000) if unicodedata.category(chr(i)) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd")]
    words = [f"a{letter}b" for letter in letters[::5] if not "\uff10" <= letter <= "\uff19"]
    assert len(words) > 20_000
    for language in ("de", "fr", "en"):
        assert published_tokens(" ".join(words), language).split(" ") == words


# ---- text that comes as Moses tokens


def tokens_of(lines: list[str], language: str, **how: bool) -> list[str]:
    """The lines as Moses leaves them, with escapes, after the authors' replacements by hand."""
    moses = MosesTokenizer(language)
    replaced = (MosesPunctNormalizer().replace_unicode_punct(line).replace("„", '"') for line in lines)
    return [moses.tokenize(line, return_str=True, **how) for line in replaced]


@pytest.mark.parametrize("how", [{}, {"aggressive_dash_splits": True}], ids=["as usual", "dashes split"])
@pytest.mark.parametrize(("language", "published"), [("de", 70.8460), ("fr", 72.3837)])
def test_given_tokens_score_as_the_text_they_were_cut_from(language: str, published: float, how: Any) -> None:
    sides = [tokens_of(read(GOLDEN / f"{side}.{language}"), language, **how) for side in ("hyp", "ref")]
    assert any("&apos;" in line or "&quot;" in line for line in sides[1])
    found = published_score(*sides, language, are_tokens=True).bleu
    assert found == pytest.approx(published, abs=5e-5)  # as the original Perl scripts have it of the plain text
    assert published_score(*sides, language).bleu != pytest.approx(published, abs=0.5)  # cut again, they are worth more


@pytest.mark.parametrize(
    ("tokens", "counted", "plain"),
    [
        ("Tom &apos;s &quot; Haus &quot; .", 'Tom \'s " Haus " .', 'Tom \'s "Haus".'),
        ("a &amp; b &lt; c &gt; d &#124; e", "a & b < c > d | e", "a & b < c > d | e"),
        ("&#91; 1 &#93; &bra; 2 &ket; &bar;", "[ 1 ] [ 2 ] |", "[1] [2] |"),
        ("&amp;lt; &amp;amp; &amp;quot;", "&lt; &amp; &quot;", "&lt; &amp; &quot;"),  # they stood in the text like that
        ("die E-Mail-Adresse", f"die E {AT} Mail {AT} Adresse", "die E-Mail-Adresse"),
        ("die E @-@ Mail @-@ Adresse", f"die E {AT} Mail {AT} Adresse", "die E-Mail-Adresse"),
        ("a @-@ b @-@ c", f"a {AT} b-c", "a-b-c"),  # one match uses up both letters, as in the script
        ("z. B. 1.249,90 &euro; …", "z. B. 1.249,90 &euro; ...", "z. B. 1.249,90 &euro; …"),
        ("", "", ""),
    ],
)
def test_tokens_are_unescaped_and_never_cut_again(tokens: str, counted: str, plain: str) -> None:
    assert given_tokens(tokens, "de") == counted
    assert plain_text(tokens, "de") == plain


def test_sacrebleu_of_tokens_is_that_of_their_plain_text() -> None:
    hypotheses, references = (
        ["Er rief : &quot; Tom &apos;s Hund ! &quot;"],
        ["Er rief : &quot; Tom &apos;s Haus ! &quot;"],
    )
    plain = sacrebleu_score(['Er rief: "Tom \'s Hund!"'], ['Er rief: "Tom \'s Haus!"'], "de")
    found = sacrebleu_score(hypotheses, references, "de", are_tokens=True)
    assert replace(found, signature=plain.signature) == plain
    assert (
        sacrebleu_score(hypotheses, references, "de").bleu > plain.bleu + 5
    )  # "& apos ;" counts as three words that are right


@pytest.mark.parametrize("language", ["es", "cs", "zh-Hans"])
def test_tokens_of_any_language_are_joined(language: str) -> None:
    # by the rules that hold for any; those of the library for Czech fail on "li" after a dash
    assert plain_text("uno , dos - li &#91; 3 &#93; .", language) == "uno, dos - li [3]."
    with pytest.raises(ValueError, match="no published protocol"):
        published_score(["a"], ["a"], language, are_tokens=True)


def test_signatures_of_tokens_say_so() -> None:
    pair, moses = (["ein Satz"], ["ein Wort"]), f"sacremoses-{version('sacremoses')}"
    signed = {of: sacrebleu_score(*pair, of, are_tokens=True).signature for of in ("de-AT", "es", "zh")}
    assert f"|eff:no|detok:moses-de-{moses}|tok:13a|smooth:exp|" in signed["de-AT"]
    assert f"|detok:moses-any-{moses}|tok:13a|" in signed["es"]
    assert f"|detok:moses-any-{moses}|tok:zh|" in signed["zh"]
    assert published_score(*pair, "de", are_tokens=True).signature == (
        "BLEU|nrefs:1|case:mixed|punct:replace-unicode+low-quote|tok:given-unescaped|split:compounds|smooth:none"
        f"|version:{version('sacrebleu')}"
    )


@pytest.mark.parametrize(
    ("test_set", "system", "language", "sacre", "published"),
    [
        ("outputs_newstest2017_ende/newstest2017", "transformer-tensor2tensor", "de", 26.34, 26.51),
        ("outputs_newstest2017_ende/newstest2017", "rnn-nematus", "de", 23.78, 23.93),
        ("outputs_newstest2014/newstest2014_ende", "bergamot-tiny", "de", 29.90, 31.70),
        ("outputs_newstest2014/newstest2014_enfr_sacrebleu_order", "bergamot-base-memory", "fr", 41.06, 43.22),
    ],
)
def test_outputs_of_published_systems(
    real_text: Path, test_set: str, system: str, language: str, sacre: float, published: float
) -> None:
    hypotheses = read(real_text / f"{test_set}.hyp.{system}.{language}.gz")
    references = read(real_text / f"{test_set}.ref.{language}.gz")
    assert round(sacrebleu_score(hypotheses, references, language).bleu, 2) == sacre
    assert round(published_score(hypotheses, references, language).bleu, 2) == published
