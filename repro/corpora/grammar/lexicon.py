"""The words of the corpus `grammar` and their forms in English, German and French, as `words.txt` lists them.

It has a table for each part of speech, one line per lemma, the most frequent first in each group; word order is in
`english`, `german` and `french`. One English lemma has one German and one French lemma, so that only the sentence,
never chance, decides how a word is rendered. In a line, bars divide fields and slashes the forms of one word; a dash is
nothing.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

T = TypeVar("T")
Forms = tuple[str, ...]
VOWELS = tuple("aeiouyhàâéèêëîïôûœAEIOUHÉÈÊ")  # French h is mute here: the lexicon holds no aspirated h


class Noun(NamedTuple):
    """A noun of one class (what may eat, be eaten, be worn ...) with gender and plural in three languages."""

    # h human, a animal, o object, d what opens, m furniture, f food, c clothing, r text, v vehicle,
    # p place, e event
    kind: str
    pronoun: str  # he, she or it
    en: Forms  # of one and of several
    de: Forms  # nominative, accusative, dative and genitive, of one and of several
    de_gender: str  # m, f, n
    fr: Forms
    fr_gender: str  # m, f
    at: Forms = ()  # places only: prepositions of English, German (where), German (where to), French


class Modifier(NamedTuple):
    """The first noun of a compound: kitchen table, Küchentisch, table de cuisine."""

    kinds: str  # classes of the heads it goes with
    en: str
    de: str
    fr: str


class Adjective(NamedTuple):
    """An adjective, the classes of nouns it describes, and its comparative where it has one."""

    kinds: str
    en: str
    en_more: str  # older, more beautiful
    de: str
    de_stem: str  # hoch, but hoh-e
    de_more: str  # älter
    fr: Forms
    before: bool  # BANGS: stands before the noun in French


class Verb(NamedTuple):
    """A verb with its frame."""

    # the classes that each argument may have, subject first: giver, receiver, thing; @ is a place gone to, = a place
    # where something is put. Of a verb with a clause, the clause's kind
    roles: Forms
    en: Forms  # buy, buys, bought, bought
    en_particle: str  # turn *off*
    en_prep: str  # wait *for*
    de: str  # without its prefix: kommen
    de_prefix: str  # an
    de_present: Forms
    de_participle: str
    de_sein: bool
    de_prep: str
    de_case: str  # of the object, or of the noun after de_prep
    de_reflexive: bool  # sich erinnern
    fr: str
    fr_etre: bool
    fr_reflexive: bool
    fr_prep: str
    no_manner: bool  # it takes no adverb such as "quickly"


class Prep(NamedTuple):
    """A preposition and the case it takes in German."""

    en: str
    de: str
    case: str
    fr: str


WORDS = {
    section.partition("]")[0].strip("["): [
        ["" if field == "-" else field for field in line.split(" | ")] for line in section.split("\n")[1:]
    ]
    for section in Path(__file__).with_name("words.txt").read_bytes().decode().strip().split("\n\n")
}


def forms(field: str) -> Forms:
    """The forms of one word."""
    return tuple("" if form == "-" else form for form in field.split("/"))


def _listed(kind: Callable[..., T], section: str) -> list[T]:
    read = [forms if hint == Forms else hint for name, hint in get_type_hints(kind).items() if name != "return"]
    return [kind(*(one(field) for one, field in zip(read, line, strict=False))) for line in WORDS[section]]


nouns, modifiers = _listed(Noun, "nouns"), _listed(Modifier, "modifiers")
adjectives, verbs = _listed(Adjective, "adjectives"), _listed(Verb, "verbs")
clause_verbs = _listed(Verb, "clause_verbs")
ENGLISH_NUMBERS, GERMAN_NUMBERS, FRENCH_NUMBERS = zip(*WORDS["numbers"], strict=True)  # from 0 to 99


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
    plain = [verb for verb in verbs if len(verb.roles) == 2 and verb.de_case == "A" and not verb.fr_reflexive]
    return [one for one in plain if {*one.roles[1]} & {*"fcrdmv"} and not one.de_prep + one.fr_prep + one.en_prep]


@cache
def describing(kind: str, before: bool | None = None) -> list[Adjective]:
    """The adjectives for a class of nouns: all, or those on one side of the French noun."""
    return [a for a in adjectives if kind in a.kinds and before in (None, a.before)]


@cache
def compounding(kind: str) -> list[Modifier]:
    """The first halves of compounds that go with a class of nouns."""
    return [modifier for modifier in modifiers if kind in modifier.kinds]
