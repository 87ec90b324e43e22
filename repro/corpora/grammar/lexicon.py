"""The words of the corpus `grammar` and their forms in English, German and French.

`words.txt` has plain tables, one line per lemma, the most frequent first in each group. Inflection and word order are
in `english`, `german` and `french`. One English lemma has one German and one French lemma, so that only the
sentence, never chance, decides how a word is rendered.

Underscores stand for spaces inside an entry; regular forms are not written down, they are computed below.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

VOWELS = tuple("aeiouyhàâéèêëîïôûœAEIOUHÉÈÊ")  # French h is mute here: the lexicon holds no aspirated h


@dataclass(frozen=True)
class Noun:
    """A noun of one class (what may eat, be eaten, be worn ...) with gender and plural in three languages."""

    # h human, a animal, o object, d what opens, m furniture, f food, c clothing, r text, v vehicle,
    # p place, e event
    kind: str
    pronoun: str  # he, she or it
    en: str
    en_plural: str
    de: str
    de_plural: str
    de_gender: str  # m, f, n
    weak: bool  # n-declension: der Junge, den Jungen
    fr: str
    fr_plural: str
    fr_gender: str  # m, f
    at: tuple[str, ...] = ()  # places only: prepositions of English, German (where), German (where to), French

    def german(self, case: str, plural: bool) -> str:
        """The form in one case: N, A, D or G."""
        if plural:
            return self.de_plural + ("n" if case == "D" and not self.de_plural.endswith(("n", "s")) else "")
        if self.weak:
            return self.de if case == "N" else self.de_plural
        if case != "G" or self.de_gender == "f":
            return self.de
        return self.de + ("es" if self.de.endswith(("s", "ß", "z", "sch")) or _one_syllable(self.de) else "s")


@dataclass(frozen=True)
class Modifier:
    """The first noun of a compound: kitchen table, Küchentisch, table de cuisine."""

    kinds: str  # classes of the heads it goes with
    en: str
    de: str
    fr: str


@dataclass(frozen=True)
class Adjective:
    """An adjective, the classes of nouns it describes, and its comparative where it has one."""

    kinds: str
    en: str
    en_more: str  # older, more beautiful
    de: str
    de_stem: str  # hoch, but hoh-e
    de_more: str  # älter
    fr: str
    fr_feminine: str
    fr_liaison: str  # before a vowel, masculine: vieil
    before: bool  # BANGS: stands before the noun in French

    def french(self, gender: str, plural: bool, following: str = "") -> str:
        """The form for a gender and number, before a following word if that matters: vieil homme."""
        if plural:
            return self.fr_feminine + "s" if gender == "f" else french_plural(self.fr)
        if gender == "f":
            return self.fr_feminine
        return self.fr_liaison if following.startswith(VOWELS) else self.fr


@dataclass(frozen=True)
class Verb:
    """A verb with its frame: `roles` are the classes that each argument may have, subject first."""

    roles: tuple[str, ...]
    en: str
    en_past: str
    en_participle: str
    en_particle: str  # turn *off*
    en_prep: str  # wait *for*
    de: str  # without its prefix: kommen
    de_prefix: str  # an
    de_present: str  # third person singular
    de_participle: str
    de_sein: bool
    de_prep: str
    de_case: str  # of the object, or of the noun after de_prep
    de_reflexive: bool  # sich erinnern
    fr: str
    fr_etre: bool
    fr_reflexive: bool
    fr_prep: str


@dataclass(frozen=True)
class Prep:
    """A preposition and the case it takes in German."""

    en: str
    de: str
    case: str
    fr: str


# verbs: subject > object, giver > receiver > thing; @ a place gone to, = a place where something is put
WORDS = {
    section.partition("]")[0].strip("["): section.split("\n")[1:]
    for section in Path(__file__).with_name("words.txt").read_bytes().decode().strip().split("\n\n")
}
# the numbers from 0 to 19, and the tens: each in English, German and French
SMALL, TENS = (list(zip(*map(str.split, WORDS[name]), strict=True)) for name in ("numbers", "tens"))
DETERMINERS = [line.split(" | ") for line in WORDS["determiners"]]


def _one_syllable(word: str) -> bool:
    """Does the word have one group of vowels? (Mann, Hund, Freund; not Lehrer)"""
    vowels = "".join("v" if letter in "aeiouyäöü" else " " for letter in word.lower())
    return len(vowels.split()) == 1


def _forms(entry: str, n: int) -> list[str]:
    """Split `a/b/c` into n forms; a missing one repeats the last."""
    forms = entry.replace("_", " ").split("/")
    return forms + [forms[-1]] * (n - len(forms))


def english_plural(word: str) -> str:
    """ladies, boxes, dogs"""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "sh", "ch")) else "s")


def english_past(word: str) -> str:
    """carried, loved, opened (verbs that double a letter, like stop, are in the lexicon)"""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


def english_more(word: str) -> str:
    """older, nicer, happier, more beautiful"""
    if word.endswith("y"):
        return word[:-1] + "ier"
    if not _one_syllable(word[:-1] if word.endswith("e") else word):
        return "more " + word
    return word + ("r" if word.endswith("e") else "er")


def french_plural(word: str) -> str:
    """bras, chevaux, bateaux, chiens"""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith("eau") else "s")


def _noun(line: str) -> Noun:
    kind, pronoun, en, de, fr, *at = line.split()
    (de, de_gender), (fr, fr_gender) = de.split(":"), fr.split(":")
    en_forms, de_forms, fr_forms = _forms(en, 1), _forms(de, 2), _forms(fr, 1)
    return Noun(
        kind, pronoun,
        en_forms[0], en_forms[1] if len(en_forms) > 1 else english_plural(en_forms[0]),
        de_forms[0], de_forms[1], "m" if de_gender == "w" else de_gender, de_gender == "w",
        fr_forms[0], fr_forms[1] if len(fr_forms) > 1 else french_plural(fr_forms[0]), fr_gender,
        tuple(at[0].split("/")) if at else (),
    )  # fmt: skip


def _adjective(line: str) -> Adjective:
    kinds, en, de, de_more, fr = line.split()
    en, _, en_more = en.partition(":")
    de_forms, fr_forms = _forms(de, 2), _forms(fr.removeprefix("<"), 1)
    feminine = fr_forms[1] if len(fr_forms) > 1 else fr_forms[0] + ("" if fr_forms[0].endswith("e") else "e")
    liaison = fr_forms[2] if len(fr_forms) > 2 else fr_forms[0]
    more = "" if de_more == "-" else en_more or english_more(en)
    before = fr.startswith("<")
    de, stem = de_forms[0], de_forms[1].removesuffix("e")  # müde: müd-er
    return Adjective(kinds, en, more, de, stem, de_more, fr_forms[0], feminine, liaison, before)


def _verb(line: str) -> Verb:
    roles, en, de, fr = line.split()
    en, _, prep = en.partition(":")
    en, _, particle = en.partition("~")
    parts = en.split("/")
    past = parts[1] if len(parts) > 1 else english_past(parts[0])
    de, _, frame = de.partition("+")
    infinitive, present, participle = de.split(":")
    prefix, _, stem = infinitive.rpartition("|")
    de_prep, _, case = frame.rpartition(".")
    fr, _, fr_prep = fr.partition("+")
    reflexive = fr.startswith(("se_", "s'_"))
    return Verb(
        tuple(roles.split(">")),
        parts[0], past, parts[2] if len(parts) > 2 else past, particle, prep,
        stem.removeprefix("sich_"), prefix, present,
        participle.lstrip("*"), participle.startswith("*"), de_prep,
        case or "A", stem.startswith("sich_"),
        fr.lstrip("*").removeprefix("se_").removeprefix("s'_"), fr.startswith("*") or reflexive, reflexive,
        fr_prep,
    )  # fmt: skip


def _town(entry: str) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """A town or country, where (in Berlin) and where to (nach Berlin), in three languages."""
    en, de, fr = entry.split()
    (prep, town), (at, to, de_town) = en.split("/"), de.replace("_", " ").split("/")
    fr = fr.replace("_", " ")
    return (f"{prep} {town}", f"{at} {de_town}", fr), (f"to {town}", f"{to} {de_town.replace('der ', 'die ')}", fr)


nouns = [_noun(line) for line in WORDS["nouns"]]
modifiers = [Modifier(*(field.replace("_", " ") for field in line.split())) for line in WORDS["modifiers"]]
adjectives = [_adjective(line) for line in WORDS["adjectives"]]
verbs = [_verb(line) for line in WORDS["verbs"]]
clause_verbs = [(kind, _verb("h " + rest)) for kind, rest in (row.split(" ", 1) for row in WORDS["clause_verbs"])]
names = [(name, pronoun) for name, pronoun in map(str.split, WORDS["names"])]
towns = [_town(entry) for entry in WORDS["towns"]]


@cache
def of_kind(kind: str) -> list[Noun]:
    """The nouns of one class."""
    return [noun for noun in nouns if noun.kind == kind]


@cache
def with_subject(kind: str) -> list[Verb]:
    """The verbs that a noun of this class may be the subject of."""
    return [verb for verb in verbs if kind in verb.roles[0]]


@cache
def with_object(kind: str) -> list[Verb]:
    """The verbs of two roles that a noun of this class may be the object of."""
    return [verb for verb in verbs if len(verb.roles) == 2 and kind in verb.roles[1]]


@cache
def passive() -> list[Verb]:
    """Verbs whose object is a plain accusative thing in every language: what the passive is made of."""
    return [
        verb
        for verb in verbs
        if len(verb.roles) == 2 and set(verb.roles[1]) & set("fcrdmv")
        and verb.de_case == "A" and not (verb.de_prep or verb.fr_prep or verb.en_prep or verb.fr_reflexive)
    ]  # fmt: skip


@cache
def describing(kind: str, before: bool | None = None) -> list[Adjective]:
    """The adjectives for a class of nouns: all, or those on one side of the French noun."""
    return [a for a in adjectives if kind in a.kinds and before in (None, a.before)]


@cache
def compounding(kind: str) -> list[Modifier]:
    """The first halves of compounds that go with a class of nouns."""
    return [modifier for modifier in modifiers if kind in modifier.kinds]
