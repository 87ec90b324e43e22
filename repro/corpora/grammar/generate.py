"""The embedded corpora `grammar` and `grammar_trees`: English sentences with German and French sides, or with trees.

A tree is drawn first; then each language lays the same tree out by its own rules (`english`,
`german`, `french`). A translation is therefore right by construction, and it is a function of the whole
English sentence. How a word is translated often depends on words far from it:

    Yesterday, the old man who helps my sister did not close the kitchen door because it was broken.
    Gestern hat der alte Mann, der meiner Schwester hilft, die Küchentür nicht zugemacht, weil sie kaputt war.
    Hier, le vieil homme qui aide ma sœur n'a pas fermé la porte de cuisine parce qu'elle était cassée.

Both corpora are the same on every machine, and have the same English sentences in the same order: all randomness comes
from `random.Random(seed).random()`. Nouns, verbs and adjectives are drawn by the law of Zipf and Mandelbrot.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TypeVar

from repro.corpora.grammar import tree
from repro.corpora.grammar.english import english, english_tree
from repro.corpora.grammar.french import french, french_number
from repro.corpora.grammar.german import german
from repro.data.treebank import Bracket, Tree, bracketed, read_trees
from repro.storage.atomic import write_text

T = TypeVar("T")
DISTURBED = 0.1  # share of wrong brackets in a silver tree: about that of the parsers behind the paper's corpora
OTHERS = ("NP", "VP", "PP", "S", "SBAR", "ADVP", "ADJP")  # the labels that a wrong bracket may get


# The corpora --------------------------------------------------------------------------------------------


def _drawn(seed: int) -> Iterator[tuple[tree.Sentence, str]]:
    """An endless stream of sentences with their English, none twice, 4 to 30 English words."""
    author, seen = Author(seed), set[str]()
    while True:
        sentence = author.sentence()
        line = english(sentence)
        if line not in seen and 4 <= line.count(" ") + 1 <= 30:
            seen.add(line)
            yield sentence, line


def sentences(seed: int) -> Iterator[tuple[str, str, str]]:
    """An endless stream of (English, German, French), no English sentence twice, 4 to 30 English words."""
    for sentence, line in _drawn(seed):
        yield line, german(sentence), french(sentence)


def write_grammar(folder: Path, *, n_train: int, n_dev: int, n_test: int, seed: int = 0) -> None:
    """Write train, dev and test as .en, .de and .fr into `folder`.

    Test is drawn first, then dev, then train, from one stream that never repeats an English sentence: the
    splits are disjoint by source, and the held-out sets are the same however much training text follows.
    """
    stream = sentences(seed)
    for split, n in (("test", n_test), ("dev", n_dev), ("train", n_train)):
        triples = [next(stream) for _ in range(n)]
        for column, language in enumerate(("en", "de", "fr")):
            write_text(folder / f"{split}.{language}", "".join(triple[column] + "\n" for triple in triples))


# Trees -----------------------------------------------------------------------------------------------------


def gold_trees(seed: int) -> Iterator[Tree]:
    """An endless stream of trees, no sentence twice, 4 to 30 words before punctuation is split off."""
    for sentence, _ in _drawn(seed):
        [found] = read_trees(english_tree(sentence))
        assert isinstance(found, Tree)
        yield found


def silver_tree(whole: Tree, chance: Random, share: float = DISTURBED) -> Tree:
    """The tree with errors like a parser's in this share of its brackets; the root is kept.

    One in three is left out, one has another label, and one loses its last word to the bracket around it.
    """
    root, *others = whole.brackets
    kept = [root]
    for bracket in others:
        roll = chance.random() / share
        if roll < 1 / 3:
            continue
        if roll < 2 / 3:
            bracket = bracket._replace(label=OTHERS[int(chance.random() * len(OTHERS))])
        elif roll < 1 and bracket.end - bracket.begin > 1:
            bracket = bracket._replace(end=bracket.end - 1)
        kept.append(bracket)
    return Tree(whole.leaves, tuple(_nested(kept)))


def _nested(brackets: list[Bracket]) -> Iterator[Bracket]:
    """The brackets, each cut where it would end after the one around it."""
    around: list[Bracket] = []
    for bracket in brackets:
        while around and around[-1].end <= bracket.begin:
            around.pop()
        end = min(bracket.end, around[-1].end) if around else bracket.end
        if bracket.begin < end:
            around.append(bracket._replace(end=end))
            yield around[-1]


def write_grammar_trees(folder: Path, *, n_train: int, n_dev: int, n_test: int, n_silver: int, seed: int = 0) -> None:
    """Write test, dev, train and silver as files of trees, drawn in this order from one stream that repeats nothing.

    The held-out trees are the same however much training text follows.
    """
    stream, chance = gold_trees(seed), Random(f"silver {seed}")
    for split, n in (("test", n_test), ("dev", n_dev), ("train", n_train), ("silver", n_silver)):
        trees = (next(stream) for _ in range(n))
        lines = (bracketed(silver_tree(one, chance) if split == "silver" else one, "TOP") for one in trees)
        if n:
            write_text(folder / f"{split}.mrg", "".join(f"{line}\n" for line in lines))


# Sentences ----------------------------------------------------------------------------------------------


def _fixed(group: str) -> list[tree.Fixed]:
    """The adverbials or conjunctions of a group of `words.txt`."""
    return [tree.Fixed(*line) for line in tree.WORDS[group]]


OFTEN, MANNER, JOINS, ASKED, DEGREES, LINKS = map(_fixed, ("often", "manner", "joins", "asked", "degrees", "links"))
WHEN = LINKS[1]
TIMES = {tense: _fixed(tense) for tense in ("present", "past", "future")}
BESIDE, DURING = ([tree.Prep(*line) for line in tree.WORDS[group]] for group in ("beside", "during"))
WITH, ABOUT = BESIDE[0], tree.Prep("about", "über", "A", "sur")
NEAR = tree.WORDS["near"]  # accusative where something is put, dative where it is
COUNTED = ("no", "every", "all", "many", "some")  # `every dog does not` would say two things


@cache
def _zipf(n: int) -> list[float]:
    """Cumulative weights of the ranks 1 to n under Zipf and Mandelbrot: 1 / (rank + 2)."""
    return list(accumulate(1 / (rank + 2) for rank in range(1, n + 1)))


class Author:
    """Draws sentence trees."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random  # the one method whose stream Python promises not to change
        self.mentions: list[tuple[str, tree.Thing]] = []  # what a pronoun of this sentence could stand for

    # Chance -------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.random() < p

    def pick(self, items: Sequence[T]) -> T:
        """One of the items by Zipf's law: the first is the most frequent."""
        weights = _zipf(len(items))
        return items[bisect(weights, self.random() * weights[-1])]

    def even(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[int(self.random() * len(items))]

    def among(self, **weights: float) -> str:
        """One of the names, drawn by the weights that are given."""
        at = self.random() * sum(weights.values())
        for name, weight in weights.items():
            at -= weight
            if at < 0:
                return name
        return max(weights, key=lambda name: weights[name])

    # Noun phrases -------------------------------------------------------------------------------------

    def thing(
        self, kinds: str, *, depth: int = 0, definite: bool = False, beside: tree.Thing | None = None
    ) -> tree.Thing:
        """A pronoun, a name, two things joined, or a noun phrase; an object stands `beside` a subject."""
        roll = self.random()
        if "h" in kinds and roll < 0.15:
            return self.pronoun(beside)
        if "h" in kinds and roll < 0.25:
            return self.name()
        if depth == 0 and roll > 0.95:
            kind = self.even(kinds)
            first, second = (self.noun_phrase(kind, depth=2, definite=True) for _ in range(2))
            if first.noun is not second.noun:
                self.mentions.append(("they", tree.And(first, second)))
                return self.mentions[-1][1]
        return self.noun_phrase(kinds, subject=beside is None, depth=depth, definite=definite)

    def pronoun(self, beside: tree.Thing | None) -> tree.Pronoun:
        """I, you, he ...; none that would have to be reflexive, and `they` only where its gender is plain."""
        words = ["you", "I", "he", "she", "we", "they"]
        if isinstance(beside, tree.Pronoun):
            words = ["he", "she"] if beside.word in ("I", "you", "we") else ["you", "I", "we"]
        word = self.pick(words)
        if word == "they" and any(word == "they" for word, _ in self.mentions):
            word = "we"
        pronoun = tree.Pronoun(word)
        if word in ("he", "she", "they"):
            self.mentions.append((word, pronoun))
        return pronoun

    def back(self) -> tree.Pronoun | None:
        """A pronoun for something named before, where its English form can mean only one thing."""
        words = [word for word, _ in self.mentions]
        single = [
            (word, thing)
            for word, thing in self.mentions
            if words.count(word) == 1 and not (isinstance(thing, tree.NP) and thing.det in ("every", "no"))
        ]
        return tree.Pronoun(*self.even(single)) if single else None

    def name(self) -> tree.PersonName:
        met = {thing.en for _, thing in self.mentions if isinstance(thing, tree.PersonName)}
        name = tree.PersonName(*self.pick([name for name in tree.WORDS["names"] if name[0] not in met]))
        self.mentions.append((name.pronoun, name))
        return name

    def noun_phrase(self, kinds: str, *, subject: bool = False, depth: int = 0, definite: bool = False) -> tree.NP:
        """Determiner, numeral, adjectives, compound, noun, owner, phrase, relative clause; less when deep."""
        kind = self.even(kinds)
        noun = self.pick(tree.of_kind(kind))
        det = self.among(the=45, a=0 if definite else 27, my=4, your=2, his=3, her=3, our=2, their=1, this=5,
                         every=0 if definite else 3, many=0 if definite else 2, some=0 if definite else 3,
                         all=1.5, no=2 if subject and depth == 0 else 0)  # fmt: skip
        anyone = noun.en[0] in ("man", "woman")  # `my woman`, `the boy's man` are not said
        if anyone and det in ("my", "your", "his", "her", "our", "their"):
            det = "the"
        plural = det in ("many", "some", "all") or (det not in ("every", "no") and self.chance(0.25))
        numbered = plural and det in ("the", "a", "my", "this") and self.chance(0.35)
        number = 2 + int(self.random() ** 5 * 97) if numbered else 0
        adjectives = self.adjectives(kind, self.pick((0, 1, 2) if depth == 0 else (0, 1, 0)))
        compound = self.pick(tree.compounding(kind)) if tree.compounding(kind) and self.chance(0.2) else None
        owner: tree.NP | tree.PersonName | None = None
        if det == "the" and not (number or anyone) and depth < 2 and kind not in "pe" and self.chance(0.14):
            owner = self.owner()
        phrase = relative = None
        simple = owner is None and det not in ("every", "no")
        if simple and depth < 2 and self.chance(0.06) and kind not in "fcdmpe":
            about = kind == "r"
            other = self.noun_phrase("hape" if about else "c" if kind == "h" else "o", depth=3)
            phrase = tree.Phrase(ABOUT if about else WITH, other)
        elif simple and depth < 2 and self.chance((0.26, 0.14)[depth]):
            relative = self.relative(tree.Relative(noun, plural), depth + 1)
        thing = tree.NP(noun, det, plural, adjectives, compound, number, owner, phrase, relative)
        self.mentions.append(("they" if plural else noun.pronoun, thing))
        return thing

    def owner(self) -> tree.NP | tree.PersonName:
        """Anna's, the old teacher's: one person, definite, without an owner of their own."""
        if self.chance(0.4):
            return self.name()
        noun = self.pick(tree.of_kind("h"))
        owner = tree.NP(noun, self.among(the=6, my=2, this=1) if noun.en[0] not in ("man", "woman") else "the",
                        adjectives=self.adjectives("h", self.pick((0, 1))))  # fmt: skip
        self.mentions.append((noun.pronoun, owner))
        return owner

    def adjectives(self, kind: str, n: int) -> tuple[tree.Adjective, ...]:
        """`n` adjectives; of two, the first is one that French puts before the noun, the second one after it."""
        before, after = tree.describing(kind, True), tree.describing(kind, False)
        if n == 2 and before and after:
            return (self.pick(before), self.pick(after))
        return (self.pick(tree.describing(kind)),) if n else ()

    def relative(self, gap: tree.Relative, depth: int) -> tree.Clause:
        """who sleeps; that I bought; whose dog sleeps; where I live"""
        kind = gap.noun.kind
        role = self.among(subject=4 * bool(tree.with_subject(kind)), object=4 * bool(tree.with_object(kind)),
                          whose=1 if kind == "h" else 0, where=6 if kind == "p" else 0)  # fmt: skip
        if role == "object":
            verb = self.pick(tree.with_object(kind))
            subject = self.thing(verb.roles[0], depth=2)
            return replace(self.clause(subject=subject, verb=verb, object=gap, depth=depth), front="object")
        if role == "whose":
            owned = replace(self.noun_phrase("hha", depth=3, definite=True), det="the", owner=gap, number=0)
            return replace(self.clause(subject=owned, depth=depth), front="subject")
        if role == "where":
            clause = self.clause(subject=self.thing("h", depth=2), verb=self.pick(tree.with_object("o")), depth=2)
            return replace(clause, asked=ASKED[0], front="asked", place=None)
        return replace(self.clause(subject=gap, verb=self.pick(tree.with_subject(kind)), depth=depth), front="subject")

    # Clauses ------------------------------------------------------------------------------------------

    def clause(self, *, subject: tree.Thing | None = None, verb: tree.Verb | None = None,
               object: tree.Thing | None = None, tense: str = "", depth: int = 0, pointing: bool = False,
               main: bool = False, bare: bool = False) -> tree.Clause:  # fmt: skip
        """A verb with what its frame asks for, and some adverbials.

        `pointing`: may use pronouns for what was named. `main`: something may stand before the subject.
        `bare`: for an infinitive, without tense, modal or negation.
        """
        tense = tense or self.among(present=45, past=42, future=13)
        if pointing and subject is None and self.chance(0.65):
            subject = self.back()
        if verb is None:
            roll = 1.0 if bare else self.random()
            if roll < 0.16 or (subject and not tree.with_subject(kind_of(subject))):
                return self.being(subject, tense, depth)
            if roll < 0.22 and subject is None:
                return self.passive(tense, main)
            verb = self.pick(tree.with_subject(kind_of(subject)) if subject else tree.verbs)
        subject = subject or self.thing(verb.roles[0], depth=depth)
        counted = isinstance(subject, tree.NP) and subject.det in COUNTED
        negated = not (counted or bare) and self.chance(0.14)
        living = kind_of(subject) in "ha"
        modal = ""
        if living and not bare and tense != "future" and self.chance(0.18):
            modal = self.among(can=4, must=0 if negated else 3, want=3, should=0 if tense == "past" else 2)
        place: tree.Adverbial | None = None
        recipient: tree.Thing | None = None
        match verb.roles[1:]:
            case ("@",):
                place = self.toward()
            case (kinds, "="):
                object = object or self.noun_phrase(kinds, depth=2, definite=negated)
                en, de, fr = self.pick(NEAR)
                place = tree.Phrase(tree.Prep(en, de, "A", fr), self.noun_phrase("m", depth=2, definite=negated))
            case ("h", kinds):
                recipient = self.thing("h", depth=2, definite=negated, beside=subject)
                object = object or self.noun_phrase(kinds, depth=depth)
            case (kinds,):
                object = object or self.object(verb, kinds, subject, depth, negated, pointing)
        if negated and isinstance(object, tree.NP) and object.det in COUNTED:
            object = replace(object, det="the")  # `does not see every dog` says two things
        # After a relative clause an adverbial could belong to it: only the front of the sentence is left.
        closed = tree.heavy(object)
        if place is None and not (bare or closed or verb.de == "gehören") and self.chance(0.24):
            place = self.at(verb, depth, definite=negated)
        often = manner = time = None
        if tense == "present" and not (negated or counted or modal or bare) and self.chance(0.14):
            often = self.pick(OFTEN)
        elif self.chance(0.4 if main else 0.2) and (main or not (closed or tree.heavy(place))):
            time = self.time(tense, negated)
        if living and not (negated or closed or tree.heavy(place)) and not verb.no_manner and self.chance(0.1):
            manner = self.pick(MANNER)
        front = ""
        if time and main and (closed or tree.heavy(place) or self.chance(0.4)):
            front = "time"
        elif place and main and verb.roles[-1] not in "@=" and self.chance(0.25):
            front = "place"
        return tree.Clause(subject, verb, tense, modal, negated, object=object, recipient=recipient, often=often,
                           manner=manner, place=place, time=time, front=front)  # fmt: skip

    def object(
        self, verb: tree.Verb, kinds: str, subject: tree.Thing, depth: int, negated: bool, pointing: bool
    ) -> tree.Thing:
        """A pronoun for something named before, its own thing (the cat ... its ball), or something new."""
        back = self.back() if pointing and self.chance(0.4) else None
        free = verb.de_prep == verb.fr_prep == ""  # else German would say darauf, French y or en
        if back and kind_of(back) in kinds and (free or back.word in ("he", "she")) and (
            not isinstance(subject, tree.Pronoun) or subject.word != back.word
        ):  # fmt: skip
            return back
        thing = self.thing(kinds, depth=depth, definite=negated and bool(verb.de_prep), beside=subject)
        animal = isinstance(subject, tree.NP | tree.Relative) and subject.noun.kind == "a" and not subject.plural
        if animal and isinstance(thing, tree.NP) and thing.det == "the" and thing.owner is None and self.chance(0.4):
            return replace(thing, det="its", owner=tree.Pronoun("it", subject), number=0)
        return thing

    def being(self, subject: tree.Thing | None, tense: str, depth: int) -> tree.Clause:
        """is in the garden; is older than the cat; is very old"""
        subject = subject or self.thing(self.even("hhaodmcprev"), depth=depth)
        kind = kind_of(subject)
        counted = isinstance(subject, tree.NP) and subject.det in COUNTED
        negated, roll = not counted and self.chance(0.15), self.random()
        if kind in "hao" and roll < 0.2:
            return tree.Clause(subject, None, tense, negated=negated, place=self.at(None, depth, definite=True))
        adjective = self.pick(tree.describing(kind))
        than = self.noun_phrase(kind, depth=2, definite=True) if roll < 0.45 and adjective.en_more else None
        degree = self.pick(DEGREES) if adjective.en_more and not than and self.chance(0.4) else None
        return tree.Clause(subject, None, tense, negated=negated, predicate=tree.Quality(adjective, degree, than))

    def passive(self, tense: str, main: bool) -> tree.Clause:
        """was written by my sister"""
        verb = self.pick(tree.passive())
        subject = self.noun_phrase("".join(kind for kind in verb.roles[1] if kind not in "hao") or "o", subject=True)
        agent = self.noun_phrase("h", depth=2) if self.chance(0.6) else None
        tense = "present" if tense == "present" else "past"
        time = self.time(tense) if self.chance(0.4) else None
        return tree.Clause(subject, verb, tense, passive=True, agent=agent, time=time,
                           front="time" if time and main and self.chance(0.4) else "")  # fmt: skip

    def toward(self) -> tree.Adverbial:
        """to the school, to Berlin"""
        if self.chance(0.15):
            return tree.Fixed(*self.pick(tree.WORDS["towns"])[3:])
        return tree.Locative(self.noun_phrase("p", depth=1), toward=True)

    def at(self, verb: tree.Verb | None, depth: int, definite: bool = False) -> tree.Adverbial:
        """at the school, in Berlin, under the table, with my sister, after the concert"""
        there = verb is None or verb.de == "schlafen"  # a place only
        match self.among(place=5, town=1, near=1.5, beside=2 * (not there), during=2 * (not there)):
            case "town":
                return tree.Fixed(*self.pick(tree.WORDS["towns"])[:3])
            case "near":
                en, de, fr = self.pick(NEAR)
                return tree.Phrase(tree.Prep(en, de, "D", fr), self.noun_phrase("md", depth=2, definite=definite))
            case "beside":
                prep = self.pick(BESIDE)
                definite = definite or prep.en == "without"  # sans paysans: French would drop the article
                return tree.Phrase(prep, self.noun_phrase("h", depth=2, definite=definite))
            case "during":
                return tree.Phrase(self.pick(DURING), self.noun_phrase("e", depth=2, definite=True))
        return tree.Locative(self.noun_phrase("p", depth=depth + 1 if depth < 2 else 2, definite=definite))

    def time(self, tense: str, negated: bool = False) -> tree.Fixed:
        """yesterday; three weeks ago; in twenty-one days"""
        if tense == "present" or self.chance(0.7):
            times = TIMES[tense]
            return self.pick([time for time in times if not (negated and time.en == "every day")])
        n = 1 + int(self.random() ** 4 * 40)
        en_one, en_many, de_one, de_many, fr_one, fr_many = self.pick(tree.WORDS["units"])
        en, de, fr = f"{tree.ENGLISH_NUMBERS[1]} {en_one}", de_one, fr_one
        if n > 1:
            en, de = f"{tree.ENGLISH_NUMBERS[n]} {en_many}", f"{tree.GERMAN_NUMBERS[n]} {de_many}"
            fr = f"{french_number(n, fr_one.startswith('une '))} {fr_many}"
        if tense == "past":
            return tree.Fixed(en + " ago", "vor " + de, "il y a " + fr)
        return tree.Fixed("in " + en, "in " + de, "dans " + fr)

    # Sentences ----------------------------------------------------------------------------------------

    def sentence(self) -> tree.Sentence:
        self.mentions = []
        match self.among(plain=40, sub=24, joined=10, reporting=14, question=12):
            case "question":
                return self.question()
            case "reporting":
                return tree.Sentence(self.reporting())
            case "plain":
                return tree.Sentence(self.clause(main=True))
            case "joined":
                main = self.clause(depth=1, main=True)
                return tree.Sentence(main, joined=tree.Sub(self.pick(JOINS), self.clause(depth=1, pointing=True)))
        link, before = self.pick(LINKS), self.chance(0.35)
        lasting = link.en in ("if", "as soon as", "while")
        tense = "present" if lasting else self.among(present=45, past=55)
        if link is WHEN and tense == "past":
            link = replace(link, de="als")
        one = self.clause(depth=1, tense=tense, main=not before)
        two = self.clause(depth=1, tense=tense, pointing=True)
        if link.en == "if":  # neither `wenn er sollte` nor `si ... devrait` is a plain condition
            one, two = (replace(c, modal="can") if c.modal == "should" else c for c in (one, two))
        return (
            tree.Sentence(two, tree.Sub(link, one), sub_first=True)
            if before
            else tree.Sentence(one, tree.Sub(link, two))
        )

    def reporting(self) -> tree.Clause:
        """says that ..., does not know whether ..., asks where ..., tries to ..."""
        verb = self.pick(tree.clause_verbs)
        [kind] = verb.roles
        subject = self.thing("h", depth=1)
        tense = self.among(present=55, past=45)
        if kind == "to":
            inner = self.clause(subject=subject, depth=1, tense="present", bare=True)
            return tree.Clause(
                subject, verb, tense, complement=tree.Sub(tree.Fixed("", "", verb.fr_prep), inner, infinitive=True)
            )
        inner = self.clause(depth=1, pointing=True)
        counted = isinstance(subject, tree.NP) and subject.det in COUNTED
        negated = kind == "whether" and verb.de == "wissen" and not counted
        link = tree.Fixed("that", "dass", "que") if kind == "that" else tree.Fixed("whether", "ob", "si")
        if kind == "whether" and self.chance(0.5):
            inner, link = asking(inner, self.even(ASKED)), tree.Fixed("", "", "")
        return tree.Clause(subject, verb, tense, negated=negated, complement=tree.Sub(link, inner))

    def question(self) -> tree.Sentence:
        """Does he ...? Where does he ...? Who sleeps? Whom, what, which cake does he see?"""
        role = self.among(whether=4, asked=3, who=1.5, whom=1, what=1.5, which=2)
        if role in ("whether", "asked"):
            clause = self.clause(subject=self.thing("hhha", depth=1))
            return tree.Sentence(asking(clause, self.even(ASKED)) if role == "asked" else clause, question=True)
        if role == "who":
            clause = self.clause(subject=tree.Asked("who"), verb=self.pick(tree.with_subject("h")))
            return tree.Sentence(replace(clause, front="subject"), question=True)
        kind = "h" if role == "whom" else self.even("ofcra")
        verb = self.pick(
            [verb for verb in tree.with_object(kind) if verb.de_case == "A" and not verb.de_prep + verb.fr_prep]
        )
        object: tree.Thing = tree.Asked("who") if role == "whom" else tree.Asked("what")
        if role == "which":
            noun, adjectives = self.pick(tree.of_kind(kind)), self.adjectives(kind, self.pick((0, 1)))
            object = tree.NP(noun, "which", self.chance(0.25), adjectives)
        clause = self.clause(subject=self.thing(verb.roles[0], depth=1), verb=verb, object=object)
        return tree.Sentence(replace(clause, front="object"), question=True)


def asking(clause: tree.Clause, asked: tree.Fixed) -> tree.Clause:
    """The clause with where, when or why at the front, and without the part that it asks for."""
    going = clause.verb is not None and clause.verb.roles[-1] in "@="
    place = None if asked.en == "where" and clause.verb and not going else clause.place
    if going and asked.en == "where":
        asked = ASKED[2]
    return replace(clause, asked=asked, front="asked", place=place, time=None if asked.en == "when" else clause.time)


def kind_of(thing: tree.Thing) -> str:
    """The class of a thing, as the frames of the verbs name it."""
    match thing:
        case tree.NP(noun=noun) | tree.Relative(noun):
            return noun.kind
        case tree.And(first, _):
            return kind_of(first)
        case tree.Pronoun(_, of) if of is not None:
            return kind_of(of)
    return "h"
