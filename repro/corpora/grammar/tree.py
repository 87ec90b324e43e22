"""The sentence as a tree, independent of language: who does what to whom, when and where, as statement or question.

`english`, `german` and `french` each lay the same tree out by their own rules.
"""

from dataclasses import dataclass
from typing import NamedTuple

from repro.corpora.grammar.lexicon import Adjective, Modifier, Noun, Prep, Verb


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
