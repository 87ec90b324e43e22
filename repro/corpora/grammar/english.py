"""English: do-support, agreement of the third person, a and an, 's, prepositions left at the end.

Which cake does the baker's son want to see?  The bus that he waits for did not arrive.

A sentence is laid out as a tree of phrases in brackets, as the Penn treebank has them, and read off its leaves.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from repro.corpora.grammar import tree
from repro.corpora.grammar.lexicon import SMALL, TENS, WORDS, english_plural


def english_number(n: int) -> str:
    """23: twenty-three"""
    if n < 20:
        return SMALL[0][n]
    return TENS[0][n // 10] + ("-" + SMALL[0][n % 10] if n % 10 else "")


def english_third(word: str) -> str:
    """he carries, he goes, he puts"""
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    return irregular.get(word) or english_plural(word)


_OBJECT_FORM = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}


def english_verbs(clause: tree.Clause, asking: bool) -> tuple[str, list[str]]:
    """The finite verb and the rest: does + buy, will + buy, was + written, bought + nothing."""
    verb, person = clause.verb, tree.features(clause.subject).person
    be = ("am", "are", "is", "are", "are")[person] if clause.tense == "present" else ""
    be = be or ("was", "were", "was", "were", "were")[person]
    if verb is None or clause.passive:
        base, past, rest = "be", "", [verb.en_participle] if verb else []
    else:
        base, past, rest = verb.en, verb.en_past, [verb.en_particle] if verb.en_particle else []
    if clause.tense == "future":
        return "will", [base, *rest]
    if clause.modal in ("can", "should") or (clause.modal == "must" and clause.tense == "present"):
        return "could" if clause.modal == "can" and clause.tense == "past" else clause.modal, [base, *rest]
    if clause.modal:  # want to, had to
        base, past, rest = (
            ("want", "wanted", ["to", base, *rest]) if clause.modal == "want" else ("have", "had", ["to", base, *rest])
        )
    if base == "be":
        return be, rest
    if clause.negated or asking:
        return ("did" if clause.tense == "past" else "does" if person == 2 else "do"), [base, *rest]
    if clause.tense == "past":
        return past, rest
    return english_third(base) if person == 2 else base, rest


MODALS = ("will", "can", "could", "must", "should")
DO = ("do", "does", "did")
# tags of the grammar's own words; those of nouns, verbs and adjectives follow from their place
TAG_OF = {word: tag for tag, *words in map(str.split, WORDS["tags"]) for word in words}
NUMBERS = frozenset(english_number(n) for n in range(100))
COMMA = "(, ,)"
LEAF = re.compile(r"\([^() ]+ ([^() ]+)\)")


def english(sentence: tree.Sentence) -> str:
    """The sentence in English: the leaves of its tree, with marks and cannot written as one does."""
    line = " ".join(LEAF.findall(english_tree(sentence)))
    return re.sub(r"\b([Cc]an) not\b", r"\1not", re.sub(r" ('s|[,.?])(?= |$)", r"\1", line))


def english_tree(sentence: tree.Sentence) -> str:
    """The sentence in brackets; its words are split as the Penn treebank splits them: the man 's dog; can not."""
    main, mark = sentence.main, "(. ?)" if sentence.question else "(. .)"
    sub = _sub(sentence.sub) if sentence.sub else ""
    front, content = _parts(main, sentence.question, after=[] if sentence.sub_first or not sub else [sub])
    if sentence.question:
        label, parts = ("SBARQ", [*front, _phrase("SQ", content)]) if front else ("SQ", content)
    elif sentence.joined:
        other = _clause(sentence.joined.clause)
        label, parts = "S", [_phrase("S", [*front, *content]), COMMA, *_tagged(sentence.joined.link.en), other]
    else:
        label, parts = "S", [*([sub, COMMA] if sentence.sub_first else []), *front, *content]
    return _finished(_phrase(label, parts), mark)


def _finished(text: str, mark: str) -> str:
    """One comma where two clauses end together, none at an end; capital first, mark last inside the root."""
    leaves = list(LEAF.finditer(text))
    needless = [
        leaf.span()
        for i, leaf in enumerate(leaves)
        if leaf[0] == COMMA and (i in (0, len(leaves) - 1) or leaves[i + 1][0] == COMMA)
    ]
    for begin, end in reversed(needless):
        text = text[:begin].rstrip() + text[end:]
    first = LEAF.search(text)
    assert first is not None
    at = first.start(1)
    return f"{text[:at]}{text[at].upper()}{text[at + 1 : -1]} {mark})"


def _phrase(label: str, parts: Sequence[str]) -> str:
    return f"({label} {' '.join(part for part in parts if part)})"


def _word(tag: str, word: str) -> str:
    return f"({tag} {word})"


def _tagged(words: str, tag: str = "NN") -> list[str]:
    """Words of the grammar's own by its list; others are numbers, names, or have this tag."""
    return [_word(_tag(word, tag), word) for word in words.split()]


def _tag(word: str, otherwise: str) -> str:
    if word in TAG_OF or word in NUMBERS:
        return TAG_OF.get(word, "CD")
    return "NNP" if word[0].isupper() else otherwise


# Phrases -----------------------------------------------------------------------------------------------------


def _thing(thing: tree.Thing, subject: bool = False) -> str:
    """him; Anna; who; the man 's old dog that I saw"""
    match thing:
        case tree.Pronoun(word):
            return _phrase("NP", [_word("PRP", word if subject else _OBJECT_FORM.get(word, word))])
        case tree.PersonName(en):
            return _phrase("NP", [_word("NNP", en)])
        case tree.Relative(noun):
            asks = "who" if subject and noun.kind == "h" else "which" if subject else "that"
            return _phrase("WHNP", [_word("WP" if asks == "who" else "WDT", asks)])
        case tree.Who():
            return _phrase("WHNP", [_word("WP", "who")])
        case tree.What():
            return _phrase("WHNP", [_word("WP", "what")])
        case tree.And(first, second):
            return _phrase("NP", [_thing(first), _word("CC", "and"), _thing(second)])
    label = "WHNP" if thing.det == "which" or isinstance(thing.owner, tree.Relative) else "NP"
    simple = _phrase(label, [*_determined(thing), *_noun(thing)])
    if not (thing.phrase or thing.relative):
        return simple
    return _phrase(
        label,
        [
            simple,
            _adverbial(thing.phrase) if thing.phrase else "",
            _subordinate(thing.relative) if thing.relative else "",
        ],
    )


def _noun(thing: tree.NP) -> list[str]:
    """two old kitchen tables"""
    number = _tagged(english_number(thing.number)) if thing.number else []
    adjectives = [_word("JJ", adjective.en) for adjective in thing.adjectives]
    compound = _tagged(thing.compound.en) if thing.compound else []
    *before, head = (thing.noun.en_plural if thing.plural else thing.noun.en).split()
    return [
        *number,
        *adjectives,
        *compound,
        *(_word("NN", w) for w in before),
        _word("NNS" * thing.plural or "NN", head),
    ]


def _determined(thing: tree.NP) -> list[str]:
    """the; these; all the; whose; the man 's"""
    match thing.owner, thing.det:
        case tree.Relative(), _:
            return [_word("WP$", "whose")]
        case tree.PersonName() | tree.NP() as owner, _:
            return [f"{_thing(owner)[:-1]} {_word('POS', chr(39) + 's')})"]
        case _, "a" if not thing.plural:
            [_, first], *_ = (leaf.strip("()").split() for leaf in _noun(thing))
            return [_word("DT", "an" if first[0] in "aeiou" else "a")]
        case _, "this" if thing.plural:
            return [_word("DT", "these")]
        case _, "all":
            return [_word("PDT", "all"), _word("DT", "the")]
        case _, "a" | "":
            return []
        case _, det:
            return _tagged(det)


def _adverbial(adverbial: tree.Adverbial) -> str:
    """yesterday; to the school; because of the storm"""
    match adverbial:
        case tree.Fixed(en):
            return _fixed(en)
        case tree.Locative(thing, toward):
            return _phrase("PP", [*_tagged("to" if toward else thing.noun.at[0], "IN"), _thing(thing)])
        case tree.Phrase(prep, thing):
            return _phrase("PP", [*_tagged(prep.en), _thing(thing)])


def _fixed(words: str) -> str:
    """in summer; now; three weeks ago; last week"""
    leaves = [_word(_tag(word, "NNS" if word.endswith("s") else "NN"), word) for word in words.split()]
    first, last = words.split()[0], words.split()[-1]
    if _tag(first, "") in ("IN", "TO"):
        return _phrase("PP", [leaves[0], _phrase("NP", leaves[1:])])
    if last == "ago":
        return _phrase("ADVP", [_phrase("NP", leaves[:-1]), leaves[-1]])
    if _tag(first, "") == "WRB":
        return _phrase("WHADVP", leaves)
    return _phrase("ADVP" if _tag(first, "") == "RB" else "NP", leaves)


def _quality(quality: tree.Quality) -> str:
    """very old; older than the cat; more beautiful than she"""
    adjective = quality.adjective
    if not quality.than:
        return _phrase("ADJP", [*(_tagged(quality.degree.en) if quality.degree else []), _word("JJ", adjective.en)])
    *more, word = adjective.en_more.split()
    compared = [*(_word("RBR", one) for one in more), _word("JJ" if more else "JJR", word)]
    return _phrase("ADJP", [*compared, _phrase("PP", [_word("IN", "than"), _thing(quality.than)])])


# Clauses -----------------------------------------------------------------------------------------------------


def _sub(sub: tree.Sub) -> str:
    """because he sleeps; that he sleeps; where he sleeps; to sleep"""
    if sub.infinitive:
        _, content = _parts(replace(sub.clause, subject=tree.Pronoun("they")), bare=True)
        return _phrase("S", [_phrase("VP", [_word("TO", "to"), *content[1:]])])
    if sub.link.en == "when":
        return _phrase("SBAR", [_fixed("when"), _clause(sub.clause)])
    return _subordinate(sub.clause, _tagged(sub.link.en))


def _subordinate(clause: tree.Clause, link: Sequence[str] = ()) -> str:
    """A subordinate clause after its conjunction, or after a question word or relative pronoun."""
    if link:
        return _phrase("SBAR", [*link, _clause(clause)])
    front, content = _parts(clause)
    return _phrase("SBAR", [*front, _phrase("S", content)])


def _clause(clause: tree.Clause) -> str:
    """A clause of its own."""
    front, content = _parts(clause)
    return _phrase("S", [*front, *content])


def _parts(
    clause: tree.Clause, asking: bool = False, *, bare: bool = False, after: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The part that is moved to the front of a clause, and its rest: subject and verb phrase, or a question's order.

    `after` ends the verb phrase; `bare` is for an infinitive.
    """
    inverted = asking and clause.front != "subject"
    finite, rest = english_verbs(clause, inverted)
    placed = _arguments(clause)
    front: list[str] = []
    if clause.front == "asked" and clause.asked:
        front = [_fixed(clause.asked.en)]
    elif clause.front == "object":
        front = [placed.pop("object")]
    elif clause.front in ("time", "place"):
        front = [placed.pop(clause.front), COMMA]
    subject = _thing(clause.subject, subject=True)
    if clause.front == "subject":
        front, subject = [subject], ""

    verb, particle = clause.verb, ""
    if verb and verb.en_particle and not clause.passive:
        rest = [word for word in rest if word != verb.en_particle]
        particle = _phrase("PRT", [_word("RP", verb.en_particle)])
    late = particle and (
        isinstance(clause.object, tree.Pronoun) or clause.recipient
    )  # pick it up, bring him back the book
    ends = [
        "" if late else particle,
        _quality(clause.predicate) if clause.predicate else "",
        placed.get("recipient", ""),
        particle if late and clause.recipient else "",
        placed.get("object", ""),
        particle if late and not clause.recipient else "",
        placed.get("stranded", ""),
        *(placed.get(role, "") for role in ("agent", "manner", "place", "time")),
        _sub(clause.complement) if clause.complement else "",
        *after,
    ]
    head = _word(_finite_tag(clause, finite, bare), finite)
    negation = _word("RB", "not") if clause.negated else ""
    often = _adverbial(clause.often) if clause.often else ""
    inner = _inner(rest, clause.passive, ends)
    if inverted:
        return front, [head, subject, negation, often, *inner]
    if verb is None or clause.passive or finite in (*MODALS, *DO):
        return front, [subject, _phrase("VP", [head, negation, often, *inner])]
    return front, [subject, often, _phrase("VP", [head, *inner])]


def _arguments(clause: tree.Clause) -> dict[str, str]:
    """The phrases around the verb, by their role; a preposition that was left behind among them."""
    verb = clause.verb
    prep = _tagged(verb.en_prep, "IN") if verb and verb.en_prep and not clause.passive else []
    thing = clause.object
    match thing:
        case tree.NP(det="a", plural=True, number=0) if clause.negated:  # does not buy any books
            thing = replace(thing, det="any")
    object = _thing(thing) if thing else ""
    of_roles = {
        "recipient": clause.recipient and _thing(clause.recipient),
        "object": object and (_phrase("PP", [*prep, object]) if prep and clause.front != "object" else object),
        "stranded": prep and clause.front == "object" and _phrase("PP", prep),
        "agent": clause.agent and _phrase("PP", [_word("IN", "by"), _thing(clause.agent)]),
        "manner": clause.manner and _adverbial(clause.manner),
        "place": clause.place and _adverbial(clause.place),
        "time": clause.time and _adverbial(clause.time),
    }
    return {role: phrase for role, phrase in of_roles.items() if phrase}


def _inner(rest: Sequence[str], passive: bool, ends: Sequence[str]) -> list[str]:
    """What follows the finite verb, one inside the other: (VP want (S (VP to (VP buy ends)))); at last the ends."""
    match rest:
        case ["to", *more]:
            return [_phrase("S", [_phrase("VP", [_word("TO", "to"), *_inner(more, passive, ends)])])]
        case [verb, *more]:
            return [_phrase("VP", [_word("VBN" if passive else "VB", verb), *_inner(more, passive, ends)])]
    return list(ends)


def _finite_tag(clause: tree.Clause, finite: str, bare: bool) -> str:
    if finite in MODALS:
        return "MD"
    if clause.tense == "past":
        return "VBD"
    return "VB" if bare else "VBZ" if tree.features(clause.subject).person == 2 else "VBP"
