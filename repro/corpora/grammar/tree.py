"""A sentence of the corpus `grammar` as a tree, independent of language, and the words that it is made of.

The tree says who does what to whom, when and where, as statement or question; `english`, `german` and `french` each lay
the same tree out by their own rules. `words.txt` lists the words with their forms in the three languages: a table for
each part of speech, one line per lemma, the most frequent first in each group. One English lemma has one German and one
French lemma, so that only the sentence, never chance, decides how a word is rendered. In a line, bars divide fields and
slashes the forms of one word; a dash is nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
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


# Sentences ----------------------------------------------------------------------------------------------


class Pronoun(NamedTuple):
    """I, you, he, she, it, we, they; `of` is what it stands for: for a dog it is er, for a cat sie."""

    word: str
    of: "Thing | None" = None


class PersonName(NamedTuple):
    """Anna, the same in all three."""

    en: str
    pronoun: str


class Relative(NamedTuple):
    """who, which, that: agrees with the noun before it, takes its case from its own clause."""

    noun: Noun
    plural: bool = False


class Asked(NamedTuple):
    """who? what?"""

    word: str


class And(NamedTuple):
    """Two things as one: the man and the woman."""

    first: "NP | PersonName"
    second: "NP | PersonName"


@dataclass(frozen=True, eq=False)
class NP:
    """A noun and all that depends on it: the three big kitchen tables of my sister that I bought"""

    noun: Noun
    det: str = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    compound: Modifier | None = None
    number: int = 0
    owner: "NP | PersonName | Relative | Pronoun | None" = None
    phrase: "Phrase | None" = None
    relative: "Clause | None" = None


Thing = Pronoun | PersonName | Relative | Asked | And | NP


class Phrase(NamedTuple):
    """A preposition and its noun."""

    prep: Prep
    thing: Thing


class Locative(NamedTuple):
    """At the school, or `toward` it: the place noun brings its prepositions (in dem Garten, in den Garten)."""

    thing: NP
    toward: bool = False


@dataclass(frozen=True, eq=False)
class Fixed:
    """An adverbial without inner structure."""

    en: str
    de: str
    fr: str


class Quality(NamedTuple):
    """very old; older than the cat"""

    adjective: Adjective
    degree: Fixed | None = None
    than: Thing | None = None


Adverbial = Phrase | Locative | Fixed


@dataclass(frozen=True, eq=False)
class Clause:
    """One verb and its arguments; `verb` None is `to be`. `front` names the part that stands first."""

    subject: Thing
    verb: Verb | None
    tense: str = "present"  # present, past, future
    modal: str = ""  # can, must, want, should
    negated: bool = False
    passive: bool = False  # the subject is what the verb acts on, `agent` who acts
    object: Thing | None = None
    recipient: Thing | None = None
    agent: Thing | None = None
    predicate: Quality | None = None
    often: Fixed | None = None
    manner: Fixed | None = None
    place: Adverbial | None = None
    time: Adverbial | None = None
    asked: Fixed | None = None  # where, when, why
    front: str = ""
    complement: "Sub | None" = None


class Sub(NamedTuple):
    """A subordinate clause with its conjunction; an `infinitive` one has no subject and no finite verb."""

    link: Fixed
    clause: Clause
    infinitive: bool = False


class Sentence(NamedTuple):
    """A main clause, alone or with a subordinate one (before or after) or a coordinated one."""

    main: Clause
    sub: Sub | None = None
    sub_first: bool = False
    joined: Sub | None = None
    question: bool = False


class Features(NamedTuple):
    """What verbs, participles and pronouns agree with."""

    person: int  # 0 I, 1 you, 2 he she it, 3 we, 4 they
    de: str  # m, f, n or p for the plural
    fr: str  # m, f

    @property
    def plural(self) -> bool:
        return self.person > 2


_FIXED = {  # without an antecedent; they are masculine in French
    "I": Features(0, "m", "m"), "you": Features(1, "m", "m"), "we": Features(3, "p", "m"),
    "he": Features(2, "m", "m"), "she": Features(2, "f", "f"), "they": Features(4, "p", "m"),
}  # fmt: skip


def features(thing: Thing) -> Features:
    """Person, number and gender; a pronoun has them from its antecedent, he and she from themselves."""
    match thing:
        case NP(noun=noun, plural=plural) | Relative(noun, plural):
            return Features(4 if plural else 2, "p" if plural else noun.de_gender, noun.fr_gender)
        case Pronoun("it" | "they", of) if of is not None:
            return features(of)
        case Pronoun(word) | PersonName(_, word):
            return _FIXED[word]
        case And(first, second):
            return Features(4, "p", "f" if features(first).fr == features(second).fr == "f" else "m")
    return Features(2, "m", "m")  # who? what?


def heavy(thing: Thing | Adverbial | None) -> bool:
    """Does it end in a relative clause, to which the words after it could belong?"""
    match thing:
        case NP(relative=relative, phrase=phrase):
            return relative is not None or heavy(phrase)
        case Locative(inner) | Phrase(_, inner):
            return heavy(inner)
    return False


def finish(words: list[str], mark: str) -> str:
    """Join, glue commas (one where two clauses end together), capital first, mark last."""
    kept = [word for i, word in enumerate(words) if word != "," or (0 < i < len(words) - 1 and words[i + 1] != ",")]
    text = " ".join(kept).replace(" ,", ",") + mark
    return text[0].upper() + text[1:]
