"""English: do-support, agreement of the third person, a and an, 's, prepositions left at the end.

Which cake does the baker's son want to see?  The bus that he waits for did not arrive.

A sentence is laid out as a tree of phrases in brackets, as the Penn treebank has them, and read off its leaves.
"""

import re
from dataclasses import replace

from repro.corpora.grammar import tree
from repro.corpora.grammar.tree import ENGLISH_NUMBERS, WORDS, Forms, forms

_OBJECT_FORM = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
_BE, _HAVE, _WANT = (("be",), ("have", "has", "had"), ("want", "wants", "wanted"))
_MODALS = ("will", "can", "could", "must", "should")
_DO = ("do", "does", "did")
# tags of the grammar's own words; those of nouns, verbs and adjectives follow from their place
TAG_OF = {word: tag for tag, words in WORDS["tags"] for word in forms(words)}
_TAGS = dict.fromkeys(ENGLISH_NUMBERS, "CD") | TAG_OF
_COMMA = "(, ,)"
_NEEDLESS = re.compile(r" \(, ,\)(?=\)*(?: \(, ,\)|$))")  # before another comma, or at the end
_LEAF = re.compile(r"\([^() ]+ ([^() ]+)\)")


def english_verbs(clause: tree.Clause, asking: bool) -> tuple[str, list[str]]:
    """The finite verb and the rest: does + buy, will + buy, was + written, bought + nothing."""
    verb, person, past = clause.verb, tree.features(clause.subject).person, clause.tense == "past"
    if verb is None or clause.passive:
        of: Forms = _BE
        rest = [verb.en[3]] if verb else []
    else:
        of, rest = verb.en, [verb.en_particle] if verb.en_particle else []
    if clause.tense == "future":
        return "will", [of[0], *rest]
    if clause.modal in ("can", "should") or (clause.modal == "must" and not past):
        return "could" if clause.modal == "can" and past else clause.modal, [of[0], *rest]
    if clause.modal:  # want to, had to
        of, rest = _WANT if clause.modal == "want" else _HAVE, ["to", of[0], *rest]
    if of is _BE:
        be = ("was", "were", "was", "were", "were") if past else ("am", "are", "is", "are", "are")
        return be[person], rest
    if clause.negated or asking:
        return "did" if past else "does" if person == 2 else "do", [of[0], *rest]
    return of[2 if past else person == 2], rest


def english(sentence: tree.Sentence) -> str:
    """The sentence in English: the leaves of its tree, with marks and cannot written as one does."""
    line = " ".join(_LEAF.findall(english_tree(sentence)))
    return re.sub(r"\b([Cc]an) not\b", r"\1not", re.sub(r" ('s|[,.?])(?= |$)", r"\1", line))


def english_tree(sentence: tree.Sentence) -> str:
    """The sentence in brackets; its words are split as the Penn treebank splits them: the man 's dog; can not.

    One comma where two clauses end together, none at the end; capital first, mark last inside the root.
    """
    sub = _sub(sentence.sub) if sentence.sub else ""
    front, content = _parts(sentence.main, sentence.question, after="" if sentence.sub_first else sub)
    label, parts = "S", [front, *content]
    if sentence.question:
        label, parts = ("SBARQ", [front, _phrase("SQ", *content)]) if front else ("SQ", content)
    elif sentence.joined:
        link, other = _tagged(sentence.joined.link.en), _clause(sentence.joined.clause)
        parts = [_phrase("S", *parts), _COMMA, link, other]
    elif sentence.sub_first:
        parts = [sub, _COMMA, *parts]
    text = _NEEDLESS.sub("", _phrase(label, *parts))
    text = re.sub(r" [^() ](?=[^() ]*\))", lambda first: first[0].upper(), text, count=1)
    return f"{text[:-1]} {'(. ?)' if sentence.question else '(. .)'})"


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _phrase(label: str, *parts: str) -> str:
    return f"({label} {_joined(*parts)})"


def _tagged(words: str, tag: str = "NN") -> str:
    """Words of the grammar's own by its list; others are numbers, names, or have this tag."""
    return " ".join(f"({_tag(word, tag)} {word})" for word in words.split())


def _tag(word: str, otherwise: str = "") -> str:
    return _TAGS.get(word) or ("NNP" if word[0].isupper() else otherwise)


# Phrases -----------------------------------------------------------------------------------------------------


def _thing(thing: tree.Thing | None, subject: bool = False) -> str:
    """him; Anna; who; the man 's old dog that I saw"""
    match thing:
        case None:
            return ""
        case tree.Pronoun(word):
            return f"(NP (PRP {word if subject else _OBJECT_FORM.get(word, word)}))"
        case tree.PersonName(en):
            return f"(NP (NNP {en}))"
        case tree.Relative(noun):
            return f"(WHNP ({'WDT that' if not subject else 'WP who' if noun.kind == 'h' else 'WDT which'}))"
        case tree.Asked(word):
            return f"(WHNP (WP {word}))"
        case tree.And(first, second):
            return f"(NP {_thing(first)} (CC and) {_thing(second)})"
    label = "WHNP" if thing.det == "which" or isinstance(thing.owner, tree.Relative) else "NP"
    simple = _phrase(label, _determiner(thing), _noun(thing))
    if not (thing.phrase or thing.relative):
        return simple
    return _phrase(label, simple, _adverbial(thing.phrase), _subordinate(thing.relative) if thing.relative else "")


def _noun(thing: tree.NP) -> str:
    """two old kitchen tables"""
    number = _tagged(ENGLISH_NUMBERS[thing.number]) if thing.number else ""
    compound = _tagged(thing.compound.en) if thing.compound else ""
    head = f"({'NNS' if thing.plural else 'NN'} {thing.noun.en[thing.plural]})"
    return _joined(number, *(f"(JJ {adjective.en})" for adjective in thing.adjectives), compound, head)


def _determiner(thing: tree.NP) -> str:
    """the; these; all the; whose; the man 's"""
    match thing.owner, thing.det:
        case tree.Relative(), _:
            return "(WP$ whose)"
        case tree.PersonName() | tree.NP() as owner, _:
            return f"{_thing(owner)[:-1]} (POS 's))"
        case _, "a" if not thing.plural:
            [first, *_] = _LEAF.findall(_noun(thing))
            return "(DT an)" if first[0] in "aeiou" else "(DT a)"
        case _, "this" if thing.plural:
            return "(DT these)"
        case _, "all":
            return "(PDT all) (DT the)"
        case _, "a":
            return ""
    return _tagged(thing.det)


def _adverbial(adverbial: tree.Adverbial | None) -> str:
    """yesterday; to the school; because of the storm"""
    match adverbial:
        case tree.Fixed(en):
            return _fixed(en)
        case tree.Locative(thing, toward):
            return _phrase("PP", _tagged("to" if toward else thing.noun.at[0], "IN"), _thing(thing))
        case tree.Phrase(prep, thing):
            return _phrase("PP", _tagged(prep.en), _thing(thing))
    return ""


def _fixed(words: str) -> str:
    """in summer; now; three weeks ago; last week"""
    leaves = [_tagged(word, "NNS" if word.endswith("s") else "NN") for word in words.split()]
    first = _tag(words.split()[0])
    if first in ("IN", "TO"):
        return _phrase("PP", leaves[0], _phrase("NP", *leaves[1:]))
    if words.endswith(" ago"):
        return _phrase("ADVP", _phrase("NP", *leaves[:-1]), leaves[-1])
    return _phrase({"WRB": "WHADVP", "RB": "ADVP"}.get(first, "NP"), *leaves)


def _quality(quality: tree.Quality) -> str:
    """very old; older than the cat; more beautiful than she"""
    adjective = quality.adjective
    if not quality.than:
        return _phrase("ADJP", _tagged(quality.degree.en) if quality.degree else "", f"(JJ {adjective.en})")
    compared = f"(JJR {adjective.en_more})"
    if adjective.en_more.startswith("more "):
        compared = f"(RBR more) (JJ {adjective.en_more.removeprefix('more ')})"
    return f"(ADJP {compared} (PP (IN than) {_thing(quality.than)}))"


# Clauses -----------------------------------------------------------------------------------------------------


def _sub(sub: tree.Sub) -> str:
    """because he sleeps; that he sleeps; where he sleeps; to sleep"""
    if sub.infinitive:
        _, [_, *content] = _parts(replace(sub.clause, subject=tree.Pronoun("they")), bare=True)
        return _phrase("S", _phrase("VP", "(TO to)", *content))
    if sub.link.en == "when":
        return f"(SBAR (WHADVP (WRB when)) {_clause(sub.clause)})"
    return _subordinate(sub.clause, sub.link.en)


def _subordinate(clause: tree.Clause, link: str = "") -> str:
    """A subordinate clause after its conjunction, or after a question word or relative pronoun."""
    if link:
        return _phrase("SBAR", _tagged(link), _clause(clause))
    front, content = _parts(clause)
    return _phrase("SBAR", front, _phrase("S", *content))


def _clause(clause: tree.Clause) -> str:
    """A clause of its own."""
    front, content = _parts(clause)
    return _phrase("S", front, *content)


def _parts(clause: tree.Clause, asking: bool = False, *, bare: bool = False, after: str = "") -> tuple[str, list[str]]:
    """What is moved to the front of a clause, and its rest: subject and verb phrase, or a question's order.

    `after` ends the verb phrase; `bare` is for an infinitive.
    """
    inverted = asking and clause.front != "subject"
    finite, rest = english_verbs(clause, inverted)
    placed = _arguments(clause)
    subject, front = _thing(clause.subject, subject=True), placed.pop(clause.front, "")
    if clause.front in ("time", "place"):
        front = f"{front} {_COMMA}"
    elif clause.front == "subject":
        front, subject = subject, ""

    verb, particle, late = clause.verb, "", False
    if verb and verb.en_particle and not clause.passive:
        rest = [word for word in rest if word != verb.en_particle]
        particle = f"(PRT (RP {verb.en_particle}))"
        late = isinstance(clause.object, tree.Pronoun)  # pick it up
    ends = [
        "" if late or clause.recipient else particle,
        _quality(clause.predicate) if clause.predicate else "",
        placed.get("recipient", ""),
        particle if clause.recipient else "",  # bring him back the book
        placed.get("object", ""),
        particle if late and not clause.recipient else "",
        *(placed.get(role, "") for role in ("stranded", "agent", "manner", "place", "time")),
        _sub(clause.complement) if clause.complement else "",
        after,
    ]
    head = f"({_finite_tag(clause, finite, bare)} {finite})"
    negation, often = "(RB not)" if clause.negated else "", _adverbial(clause.often)
    inner = _inner(rest, "VBN" if clause.passive else "VB", ends)
    if inverted:
        return front, [head, subject, negation, often, *inner]
    if verb is None or clause.passive or finite in (*_MODALS, *_DO):
        return front, [subject, _phrase("VP", head, negation, often, *inner)]
    return front, [subject, often, _phrase("VP", head, *inner)]


def _arguments(clause: tree.Clause) -> dict[str, str]:
    """The phrases around the verb, by their role; a preposition that was left behind among them."""
    verb, thing = clause.verb, clause.object
    prep = _tagged(verb.en_prep, "IN") if verb and verb.en_prep and not clause.passive else ""
    match thing:
        case tree.NP(det="a", plural=True, number=0) if clause.negated:  # does not buy any books
            thing = replace(thing, det="any")
    object, moved = _thing(thing), clause.front == "object"
    return {
        "asked": _adverbial(clause.asked),
        "recipient": _thing(clause.recipient),
        "object": _phrase("PP", prep, object) if object and prep and not moved else object,
        "stranded": _phrase("PP", prep) if prep and moved else "",
        "agent": f"(PP (IN by) {_thing(clause.agent)})" if clause.agent else "",
        **{role: _adverbial(getattr(clause, role)) for role in ("manner", "place", "time")},
    }


def _inner(rest: list[str], tag: str, ends: list[str]) -> list[str]:
    """What follows the finite verb, one inside the other: (VP want (S (VP to (VP buy ends)))); at last the ends."""
    match rest:
        case ["to", *more]:
            return [_phrase("S", _phrase("VP", "(TO to)", *_inner(more, tag, ends)))]
        case [verb, *more]:
            return [_phrase("VP", f"({tag} {verb})", *_inner(more, tag, ends))]
    return ends


def _finite_tag(clause: tree.Clause, finite: str, bare: bool) -> str:
    if finite in _MODALS:
        return "MD"
    if clause.tense == "past":
        return "VBD"
    return "VB" if bare else "VBZ" if tree.features(clause.subject).person == 2 else "VBP"
