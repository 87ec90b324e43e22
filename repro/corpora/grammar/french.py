"""French: agreement of adjective and participle, adjectives on both sides, elision, clitics, ne ... pas.

La vieille amie de l'homme ne les a pas vues.
(The man's old friend did not see them: the apples, les pommes.)
"""

from functools import cache

from repro.corpora.grammar import tree
from repro.corpora.grammar.lexicon import DETERMINERS, SMALL, TENS, VOWELS, WORDS

# verbs that are not regular: je, tu, il, nous, ils; participle; stem of the future
_IRREGULAR = {line.split()[0]: tuple(line.split()[1:]) for line in WORDS["french_verbs"]}


@cache
def french_forms(infinitive: str) -> tuple[str, ...]:
    """je, tu, il, nous, ils; participle; stem of the future."""
    if infinitive in _IRREGULAR:
        return _IRREGULAR[infinitive]
    stem = infinitive[:-2]
    if infinitive.endswith("ir"):
        return (stem + "is", stem + "is", stem + "it", stem + "issons", stem + "issent", stem + "i", infinitive)
    if infinitive.endswith("re"):
        return (stem + "s", stem + "s", stem, stem + "ons", stem + "ent", stem + "u", infinitive[:-1])
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    return (stem + "e", stem + "es", stem + "e", soft + "ons", stem + "ent", stem + "é", infinitive)


def french_participle(participle: str, gender: str, plural: bool) -> str:
    """allé, allée, allés, allées; mis, mise, mis, mises; dû has its circumflex in that form only."""
    if gender == "f":
        return participle + ("es" if plural else "e")
    return participle + ("s" if plural and not participle.endswith("s") else "")


def french_number(n: int, gender: str = "m") -> str:
    """23: vingt-trois; 21: vingt et un(e); 76: soixante-seize; 80: quatre-vingts; 95: quatre-vingt-quinze"""
    if n < 20:
        return SMALL[2][n]
    tens, units = n // 10, n % 10
    if tens in (7, 9):
        units += 10
    one = "une" if gender == "f" and units == 1 else SMALL[2][units]
    if units == 0:
        return TENS[2][tens] + ("s" if tens == 8 else "")
    return TENS[2][tens] + (" et " if units in (1, 11) and tens < 8 else "-") + one


# masculine, feminine, masculine before a vowel, feminine before a vowel, plural, feminine plural
_FR_DET = {en: fr for en, _, fr in DETERMINERS}
_FR_STRESSED = {"I": "moi", "you": "toi", "he": "lui", "she": "elle", "we": "nous"}
_FR_SUBJECT = {"I": "je", "you": "tu", "he": "il", "she": "elle", "we": "nous"}


def french_thing(thing: tree.Thing, subject: bool = False, negated: bool = False) -> list[str]:
    """lui; Anna; qui; le vieux chien de l'homme que j'ai vu"""
    agreement = tree.features(thing)
    feminine = agreement.fr == "f"
    match thing:
        case tree.Pronoun(word) if subject:
            third = ("elles" if feminine else "ils") if agreement.plural else "elle" if feminine else "il"
            return [_FR_SUBJECT.get(word, third)]
        case tree.Pronoun(word):
            third = ("elles" if feminine else "eux") if agreement.plural else "elle" if feminine else "lui"
            return [_FR_STRESSED.get(word, third)]
        case tree.PersonName(en):
            return [en]
        case tree.Relative():
            return ["qui" if subject else "que"]
        case tree.Who():
            return ["qui"]
        case tree.What():
            return ["que"]
        case tree.And(first, second):
            return [*french_thing(first), "et", *french_thing(second)]
    noun = thing.noun.fr_plural if thing.plural else thing.noun.fr
    words = noun.split() + (thing.compound.fr.split() if thing.compound else [])
    for adjective in reversed(thing.adjectives):
        if adjective.before:
            words = [*adjective.french(agreement.fr, thing.plural, words[0]).split(), *words]
    for adjective in thing.adjectives:
        if not adjective.before:
            words += adjective.french(agreement.fr, thing.plural).split()
    early = bool(thing.adjectives) and any(adjective.before for adjective in thing.adjectives)
    if thing.number:
        words = [*french_number(thing.number, agreement.fr).split(), *words]
    det = "" if thing.number and thing.det == "a" else thing.det
    if isinstance(thing.owner, tree.NP | tree.PersonName | tree.Relative):
        det = "the"
    if det == "a" and (negated or (thing.plural and early)):  # pas de livre; de grands livres
        words = ["de", *words]
    elif det:
        forms = _FR_DET[det].split()
        liaison = words[0].startswith(VOWELS) and words[0] not in ("onze", "huit")
        form = forms[4 + feminine if thing.plural else feminine + 2 * liaison]
        words = [*form.split("_"), *words]
    if isinstance(thing.owner, tree.NP | tree.PersonName):
        words += french_phrase("de", thing.owner)
    words += french_adverbial(thing.phrase) if thing.phrase else []
    words += french_clause(thing.relative) if thing.relative else []
    return words


def french_phrase(prep: str, thing: tree.Thing) -> list[str]:
    """Preposition and noun, contracted: de le -> du, à les -> aux, but de l'homme; said twice before `et`."""
    if isinstance(thing, tree.And) and prep in ("de", "à"):
        return [*french_phrase(prep, thing.first), "et", *french_phrase(prep, thing.second)]
    words = french_thing(thing)
    if prep.split()[-1] == "de" and words[0] in ("de", "des"):  # rêver d'oiseaux, parler de grands chiens
        words = words[1:]
    if isinstance(thing, tree.NP) and words[0] in ("le", "les") and prep.split()[-1] in ("de", "à"):
        elides = words[0] == "le" and words[1].startswith(VOWELS)
        *head, last = prep.split()
        if not elides:
            fused = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}[f"{last} {words[0]}"]
            return [*head, fused, *words[1:]]
    return [*prep.split(), *words]


def french_adverbial(adverbial: tree.Adverbial) -> list[str]:
    """hier; à l'école; à cause de la tempête"""
    match adverbial:
        case tree.Fixed(_, _, fr):
            return fr.split()
        case tree.Locative(thing):
            return french_phrase(thing.noun.at[3], thing)
        case tree.Phrase(prep, thing):
            return french_phrase(prep.fr, thing)


_FR_MODAL = {"can": "pouvoir", "must": "devoir", "want": "vouloir"}
_NEUTRAL = tree.Features(2, "m", "m")  # the participle agrees with nothing
_IMPERFECT = ("étais", "étais", "était", "étions", "étaient")
_DEVRAIT = ("devrais", "devrais", "devrait", "devrions", "devraient")


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
    person = subject.person
    before = [clitic] if clitic else []
    agrees = subject  # the participle after être
    if verb is None:
        main, participle, etre = "être", "été", False
    else:
        main, participle, etre = verb.fr, french_forms(verb.fr)[5], verb.fr_etre
    passive = [french_participle(participle, subject.fr, subject.plural)] if clause.passive else []
    if clause.passive:
        main, participle, etre = "être", "été", False
    if infinitive:
        return [*before, main, *passive]
    often = clause.often.fr.split() if clause.often else []
    no = isinstance(clause.subject, tree.NP) and clause.subject.det == "no"
    ne = ["ne"] if clause.negated or no or often == ["jamais"] else []
    pas = ["pas"] if clause.negated else []
    if clause.modal:
        past = clause.tense == "past"
        if clause.modal == "should":
            finite = [_DEVRAIT[person]]
        elif past:
            forms = french_forms(_FR_MODAL[clause.modal])
            return [*ne, french_forms("avoir")[person], *pas, *often, forms[5], *before, main, *passive]
        else:
            finite = [french_forms(_FR_MODAL[clause.modal])[person]]
        return [*ne, *finite, *pas, *often, *before, main, *passive]
    if clause.tense == "future":
        ending = ("ai", "as", "a", "ons", "ont")[person]  # je verrai, nous verrons
        return [*ne, *before, french_forms(main)[6] + ending, *pas, *often, *passive]
    if clause.tense == "present":
        return [*ne, *before, french_forms(main)[person], *pas, *often, *passive]
    if verb is None:
        return [*ne, _IMPERFECT[person], *pas, *often]
    direct = None if clause.passive or verb.fr_prep else clause.object
    if direct and (isinstance(direct, tree.Pronoun) or clause.front == "object"):  # la pomme que j'ai mangée
        agrees = tree.features(direct)
    elif not etre:
        agrees = _NEUTRAL
    auxiliary = french_forms("être" if etre else "avoir")[person]
    return [*ne, *before, auxiliary, *pas, *often, french_participle(participle, agrees.fr, agrees.plural), *passive]


def french_clause(clause: tree.Clause, asking: bool = False, infinitive: bool = False) -> list[str]:
    """Front, est-ce que, subject, verb with its clitic, objects, manner, place, time."""
    verb, clitic = clause.verb, french_clitic(clause)
    negative = clause.negated or bool(clause.often and clause.often.fr == "jamais")
    parts: dict[str, list[str]] = {}
    if clause.object and verb and not (clitic and isinstance(clause.object, tree.Pronoun) and not verb.fr_reflexive):
        if verb.fr_prep:
            parts["object"] = french_phrase(verb.fr_prep, clause.object)
        else:
            parts["object"] = french_thing(clause.object, negated=negative)
    if clause.recipient and not isinstance(clause.recipient, tree.Pronoun):
        parts["recipient"] = french_phrase("à", clause.recipient)
    parts["predicate"] = french_predicate(clause.predicate, clause.subject) if clause.predicate else []
    parts["agent"] = french_phrase("par", clause.agent) if clause.agent else []
    for role in ("manner", "place", "time"):
        adverbial = getattr(clause, role)
        parts[role] = french_adverbial(adverbial) if adverbial else []
    subject = french_thing(clause.subject, subject=True)
    first: list[str] = []
    match clause.front:
        case "asked" if clause.asked:
            first = clause.asked.fr.split()
        case "subject":
            match clause.subject:
                case tree.NP(owner=tree.Relative()):
                    first = ["dont"]
        case "object":
            first = parts.pop("object")
            if isinstance(clause.object, tree.Relative) and verb and verb.fr_prep:
                first = french_gap(verb.fr_prep, clause.object)
        case "time" | "place" as role:
            first = [*parts.pop(role), ","]
    if asking and clause.front != "subject":
        first = [*first, *(["est-ce", "que"])]
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
    quel = ("quelle" if gap.noun.fr_gender == "f" else "quel") + ("s" if gap.plural else "")
    if gap.noun.fr_gender == "f" and not gap.plural:
        return [prep, "la" + quel]
    article = "les" if gap.plural else "le"
    return [{"le": "au", "les": "aux"}[article] + quel] if prep == "à" else [prep, article + quel]


def french_predicate(predicate: tree.Quality, of: tree.Thing) -> list[str]:
    """très vieille; plus vieux que le chat; meilleures"""
    subject = tree.features(of)
    form = predicate.adjective.french(subject.fr, subject.plural).split()
    if predicate.than:
        if predicate.adjective.fr == "bon":
            more = [french_participle("meilleur", subject.fr, subject.plural)]
        else:
            more = ["plus", *form]
        return [*more, "que", *french_thing(predicate.than)]
    return [*(predicate.degree.fr.split() if predicate.degree else []), *form]


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
        vowel = word.startswith(VOWELS) and word not in ("onze", "huit")
        if (vowel and last in ("le", "la", "je", "me", "te", "se", "de", "ne", "que")) or (
            last == "si" and word in ("il", "ils")
        ):
            out[-1] = last[:-1] + "'" + word
        else:
            out.append(word)
    return out
