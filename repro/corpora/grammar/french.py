"""French: agreement of adjective and participle, adjectives on both sides, elision, clitics, ne ... pas.

La vieille amie de l'homme ne les a pas vues.
(The man's old friend did not see them: the apples, les pommes.)
"""

from repro.corpora.grammar import tree
from repro.corpora.grammar.tree import FRENCH_NUMBERS, VOWELS, WORDS, Forms, forms

_VERBS = {verb: forms(of) for verb, of in WORDS["french_verbs"]}
_DETERMINERS = {en: forms(fr) for en, _, fr in WORDS["determiners"]}
_STRESSED = {"I": "moi", "you": "toi", "he": "lui", "she": "elle", "we": "nous"}
_SUBJECT = {"I": "je", "you": "tu", "he": "il", "she": "elle", "we": "nous"}
_CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}


def _is_vowel(following: str) -> bool:
    """Does it make the word before it elide, or take another form? Not onze and huit."""
    return following.startswith(VOWELS) and following not in ("onze", "huit")


def _agreeing(of: Forms, feminine: bool, plural: bool, following: str = "") -> list[str]:
    """The form of a determiner or adjective, before a following word if that matters: vieil homme."""
    return of[4 + feminine if plural else feminine + 2 * _is_vowel(following)].split()


def french_participle(participle: str, agrees: tree.Features) -> str:
    """allé, allée, allés, allées; mis, mise, mis, mises; dû has its circumflex in that form only."""
    if agrees.fr == "f":
        return participle + ("es" if agrees.plural else "e")
    return participle + ("s" if agrees.plural and not participle.endswith("s") else "")


def french_number(n: int, feminine: bool = False) -> str:
    """vingt et un, vingt et une"""
    return FRENCH_NUMBERS[n] + "e" * (feminine and FRENCH_NUMBERS[n].endswith("un"))


def french_thing(thing: tree.Thing, subject: bool = False, negated: bool = False) -> list[str]:
    """lui; Anna; qui; le vieux chien de l'homme que j'ai vu"""
    agreement = tree.features(thing)
    feminine = agreement.fr == "f"
    match thing:
        case tree.Pronoun(word):
            plural, single = ("ils", "il") if subject else ("eux", "lui")
            third = ("elles" if feminine else plural) if agreement.plural else "elle" if feminine else single
            return [(_SUBJECT if subject else _STRESSED).get(word, third)]
        case tree.PersonName(en):
            return [en]
        case tree.Relative():
            return ["qui" if subject else "que"]
        case tree.Asked(word):
            return ["qui" if word == "who" else "que"]
        case tree.And(first, second):
            return [*french_thing(first), "et", *french_thing(second)]
    words = thing.noun.fr[thing.plural].split() + (thing.compound.fr.split() if thing.compound else [])
    early = [adjective.fr for adjective in thing.adjectives if adjective.before]
    for of in reversed(early):
        words = _agreeing(of, feminine, thing.plural, words[0]) + words
    for adjective in thing.adjectives:
        if not adjective.before:
            words += _agreeing(adjective.fr, feminine, thing.plural)
    if thing.number:
        words = french_number(thing.number, feminine).split() + words
    det = "" if thing.number and thing.det == "a" else thing.det
    if isinstance(thing.owner, tree.NP | tree.PersonName | tree.Relative):
        det = "the"
    if det == "a" and (negated or (thing.plural and early)):  # pas de livre; de grands livres
        words = ["de", *words]
    elif det:
        words = _agreeing(_DETERMINERS[det], feminine, thing.plural, words[0]) + words
    if isinstance(thing.owner, tree.NP | tree.PersonName):
        words += french_phrase("de", thing.owner)
    words += french_adverbial(thing.phrase)
    return words + (french_clause(thing.relative) if thing.relative else [])


def french_phrase(prep: str, thing: tree.Thing | None) -> list[str]:
    """Preposition and noun, contracted: de le -> du, à les -> aux, but de l'homme; said twice before `et`."""
    if thing is None:
        return []
    if isinstance(thing, tree.And) and prep in ("de", "à"):
        return [*french_phrase(prep, thing.first), "et", *french_phrase(prep, thing.second)]
    words, (*head, last) = french_thing(thing), prep.split()
    if last == "de" and words[0] in ("de", "des"):  # rêver d'oiseaux, parler de grands chiens
        words = words[1:]
    fused = _CONTRACTIONS.get(f"{last} {words[0]}")
    if fused and isinstance(thing, tree.NP) and not (words[0] == "le" and words[1].startswith(VOWELS)):
        return [*head, fused, *words[1:]]
    return [*head, last, *words]


def french_adverbial(adverbial: tree.Adverbial | None) -> list[str]:
    """hier; à l'école; à cause de la tempête"""
    match adverbial:
        case tree.Fixed(_, _, fr):
            return fr.split()
        case tree.Locative(thing):
            return french_phrase(thing.noun.at[3], thing)
        case tree.Phrase(prep, thing):
            return french_phrase(prep.fr, thing)
    return []


_MODAL = {"can": "pouvoir", "must": "devoir", "want": "vouloir"}
_NEUTRAL = tree.Features(2, "m", "m")  # the participle agrees with nothing


def french_clitic(clause: tree.Clause) -> str:
    """The one pronoun before the verb: se, le, lui."""
    verb, person = clause.verb, tree.features(clause.subject).person
    if verb is None or clause.passive:
        return ""
    if verb.fr_reflexive:
        return ("me", "te", "se", "nous", "se")[person]
    if isinstance(clause.recipient, tree.Pronoun):
        return ("me", "te", "lui", "nous", "leur")[tree.features(clause.recipient).person]
    if isinstance(clause.object, tree.Pronoun) and verb.fr_prep in ("", "à") and verb.fr != "penser":
        agreement = tree.features(clause.object)
        third = "lui" if verb.fr_prep else "la" if agreement.fr == "f" else "le"
        return ("me", "te", third, "nous", "leur" if verb.fr_prep else "les")[agreement.person]
    return ""


def french_verbs(clause: tree.Clause, clitic: str, infinitive: bool) -> list[str]:
    """The verb with its negation, adverb and clitic: ne l' a pas souvent vue."""
    verb, subject = clause.verb, tree.features(clause.subject)
    person, past = subject.person, clause.tense == "past"
    before = [clitic] if clitic else []
    passive: list[str] = []
    main, etre = (verb.fr, verb.fr_etre) if verb else ("être", False)
    if clause.passive:
        passive, main, etre = [french_participle(_VERBS[main][5], subject)], "être", False
    if infinitive:
        return [*before, main, *passive]
    often = french_adverbial(clause.often)
    no = isinstance(clause.subject, tree.NP) and clause.subject.det == "no"
    ne = ["ne"] if clause.negated or no or often == ["jamais"] else []
    after = [*(["pas"] if clause.negated else []), *often]
    if clause.modal == "should":
        return [*ne, _VERBS["devrait"][person], *after, *before, main, *passive]
    if clause.modal:
        modal = _VERBS[_MODAL[clause.modal]]
        finite = [_VERBS["avoir"][person], *after, modal[5]] if past else [modal[person], *after]
        return [*ne, *finite, *before, main, *passive]
    if clause.tense == "future":
        ending = ("ai", "as", "a", "ons", "ont")[person]  # je verrai, nous verrons
        return [*ne, *before, _VERBS[main][6] + ending, *after, *passive]
    if not past:
        return [*ne, *before, _VERBS[main][person], *after, *passive]
    if verb is None:
        return [*ne, _VERBS["était"][person], *after]
    direct = None if clause.passive or verb.fr_prep else clause.object
    agrees = subject if etre else _NEUTRAL
    if direct and (isinstance(direct, tree.Pronoun) or clause.front == "object"):  # la pomme que j'ai mangée
        agrees = tree.features(direct)
    auxiliary = _VERBS["être" if etre else "avoir"][person]
    return [*ne, *before, auxiliary, *after, french_participle(_VERBS[main][5], agrees), *passive]


def french_clause(clause: tree.Clause, asking: bool = False, infinitive: bool = False) -> list[str]:
    """Front, est-ce que, subject, verb with its clitic, objects, manner, place, time."""
    verb, clitic = clause.verb, french_clitic(clause)
    negative = clause.negated or bool(clause.often and clause.often.fr == "jamais")
    parts = {role: french_adverbial(getattr(clause, role)) for role in ("asked", "manner", "place", "time")}
    if clause.object and verb and not (clitic and isinstance(clause.object, tree.Pronoun) and not verb.fr_reflexive):
        thing = clause.object
        parts["object"] = french_phrase(verb.fr_prep, thing) if verb.fr_prep else french_thing(thing, negated=negative)
    if not isinstance(clause.recipient, tree.Pronoun):
        parts["recipient"] = french_phrase("à", clause.recipient)
    parts["predicate"] = french_predicate(clause.predicate, clause.subject) if clause.predicate else []
    parts["agent"] = french_phrase("par", clause.agent)
    subject = french_thing(clause.subject, subject=True)
    first = parts.pop(clause.front, [])
    match clause.front:
        case "subject":
            match clause.subject:
                case tree.NP(owner=tree.Relative()):
                    first = ["dont"]
        case "object":
            if isinstance(clause.object, tree.Relative) and verb and verb.fr_prep:
                first = french_gap(verb.fr_prep, clause.object)
        case "time" | "place":
            first = [*first, ","]
    if asking and clause.front != "subject":
        first = [*first, "est-ce", "que"]
    words = first + ([] if infinitive else subject) + french_verbs(clause, clitic, infinitive)
    objects = ("recipient", "object") if tree.heavy(clause.object) else ("object", "recipient")  # the long one last
    for role in ("predicate", *objects, "agent", "manner", "place", "time"):
        words += parts.get(role, [])
    return words + (french_sub(clause.complement) if clause.complement else [])


def french_gap(prep: str, gap: tree.Relative) -> list[str]:
    """dont; à qui; auquel, avec lesquelles"""
    if prep == "de":
        return ["dont"]
    if gap.noun.kind == "h":
        return [prep, "qui"]
    feminine = gap.noun.fr_gender == "f"
    quel = ("quelle" if feminine else "quel") + ("s" if gap.plural else "")
    article = "les" if gap.plural else "la" if feminine else "le"
    fused = _CONTRACTIONS.get(f"{prep} {article}")
    return [fused + quel] if fused else [prep, article + quel]


def french_predicate(predicate: tree.Quality, of: tree.Thing) -> list[str]:
    """très vieille; plus vieux que le chat; meilleures"""
    subject = tree.features(of)
    form = _agreeing(predicate.adjective.fr, subject.fr == "f", subject.plural)
    if not predicate.than:
        return french_adverbial(predicate.degree) + form
    better = predicate.adjective.en == "good"
    more = [french_participle("meilleur", subject)] if better else ["plus", *form]
    return [*more, "que", *french_thing(predicate.than)]


def french_sub(sub: tree.Sub) -> list[str]:
    """parce qu'il dort; qu'il dort; de dormir"""
    return [*sub.link.fr.split(), *french_clause(sub.clause, infinitive=sub.infinitive)]


def french(sentence: tree.Sentence) -> str:
    """The sentence in French."""
    words = french_clause(sentence.main, sentence.question)
    if sentence.sub:
        sub = french_sub(sentence.sub)
        words = [*sub, ",", *words] if sentence.sub_first else [*words, *sub]
    if sentence.joined:
        words += [",", *sentence.joined.link.fr.split(), *french_clause(sentence.joined.clause)]
    return tree.finish(_elide(" ".join(words).split()), " ?" if sentence.question else ".")


def _elide(words: list[str]) -> list[str]:
    """le homme -> l'homme, que il -> qu'il, si il -> s'il; not before onze and huit."""
    out: list[str] = []
    for word in words:
        last = out[-1] if out else ""
        elides = ("le", "la", "je", "me", "te", "se", "de", "ne", "que")
        if (_is_vowel(word) and last in elides) or (last == "si" and word in ("il", "ils")):
            out[-1] = last[:-1] + "'" + word
        else:
            out.append(word)
    return out
