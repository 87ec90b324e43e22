"""German: verb second and verb last, separable verbs, cases, genders, strong, weak and mixed endings.

Weil der alte Hund müde war, hat die Frau, der er folgt, ihn nicht mitgebracht.
(Because the old dog was tired, the woman that he follows did not bring him.)
"""

from repro.corpora.grammar import tree
from repro.corpora.grammar.tree import GERMAN_NUMBERS, WORDS, forms

_FORMS = {verb: forms(of) for verb, of in WORDS["german_verbs"]}
_ENDINGS = {name: dict(zip("NADG", map(forms, cases), strict=True)) for name, *cases in WORDS["german_endings"]}
_PRONOUNS = {word: dict(zip("NAD", forms(of), strict=True)) for word, of in WORDS["german_pronouns"]}
_CONTRACTIONS = {two: one for two, one in WORDS["german_contractions"]}
_DETERMINERS = {en: de for en, de, _ in WORDS["determiners"]} | {"": ""}


def _ending(name: str, case: str, gender: str) -> str:
    return _ENDINGS[name][case]["mfnp".index(gender)]


def german_determiner(word: str, case: str, gender: str) -> tuple[str, str]:
    """The determiner's form, and which endings adjectives have after it.

    mit + the + masculine: dem, weak (dem alten Hund); a + nominative neuter: ein, mixed (ein altes Haus).
    """
    if word == "der":
        return _ending("der", case, gender), "weak"
    if word in ("dies", "jed", "all", "welch", "viel", "einig"):
        return word + _ending("dieser", case, gender), "strong" if word in ("viel", "einig") else "weak"
    if not word or (word == "ein" and gender == "p"):  # nothing, a numeral, a genitive before the noun
        return "", "strong"
    return word + _ending("ein", case, gender), "mixed"


def german_thing(thing: tree.Thing, case: str, negated: bool = False) -> list[str]:
    """The noun phrase in its case; `negated` turns an indefinite article into kein."""
    agreement = tree.features(thing)
    match thing:
        case tree.Pronoun(word, of):
            return [_PRONOUNS[agreement.de if of and word in ("it", "they") else word][case]]
        case tree.PersonName(en):
            return [en]
        case tree.Relative():
            return [_ending("relative", case, agreement.de)]
        case tree.Asked(word):
            return [{"N": "wer", "A": "wen", "D": "wem"}[case] if word == "who" else "was"]
        case tree.And(first, second):
            return [*german_thing(first, case), "und", *german_thing(second, case)]
    det, before, after = _DETERMINERS[thing.det], "", []
    match thing.owner:
        case tree.Pronoun() as owner:  # its
            det = "ihr" if tree.features(owner).de == "f" else "sein"
        case tree.Relative() as owner:
            [before], det = german_thing(owner, "G"), ""
        case tree.PersonName(en):
            before, det = en + "s", ""
        case tree.NP() as owner:
            after = german_thing(owner, "G")
    if det == "ein" and thing.number:
        det = ""
    elif det == "ein" and negated:
        det = "kein"
    word, endings = german_determiner(det, case, agreement.de)
    words = [w for w in (before, word, GERMAN_NUMBERS[thing.number] if thing.number else "") if w]
    words += [adjective.de_stem + _ending(endings, case, agreement.de) for adjective in thing.adjectives]
    form = thing.noun.de[4 * thing.plural + "NADG".index(case)]
    words += [thing.compound.de + form[0].lower() + form[1:] if thing.compound else form, *after]
    words += german_adverbial(thing.phrase)
    return words + ([",", *german_clause(thing.relative, "last"), ","] if thing.relative else [])


def german_phrase(prep: str, case: str, thing: tree.Thing | None) -> list[str]:
    """Preposition and noun, fused where German fuses them: in dem -> im."""
    if thing is None:
        return []
    words = german_thing(thing, case)
    fused = _CONTRACTIONS.get(f"{prep} {words[0]}")
    if fused and isinstance(thing, tree.NP) and thing.det == "the":
        return [fused, *words[1:]]
    return [*prep.split(), *words]


def german_adverbial(adverbial: tree.Adverbial | None) -> list[str]:
    """gestern; in der Schule, in die Schule; wegen des Sturms"""
    match adverbial:
        case tree.Fixed(_, de):
            return de.split()
        case tree.Locative(thing, toward):
            prep = thing.noun.at[2 if toward else 1]
            return german_phrase(prep, "A" if toward and prep != "zu" else "D", thing)
        case tree.Phrase(prep, thing):
            return german_phrase(prep.de, prep.case, thing)
    return []


_MODAL = {"can": "können", "must": "müssen", "want": "wollen"}
_MODAL_PAST = {"can": "konnte", "must": "musste", "want": "wollte", "should": "sollte"}


def german_verbs(clause: tree.Clause) -> tuple[str, str, list[str]]:
    """Finite verb, separable prefix, what waits at the end: (kommt, an, []), (ist, "", [angekommen])."""
    verb, person = clause.verb, tree.features(clause.subject).person
    past = clause.tense == "past"
    infinitive, end, finite = "sein", list[str](), "war" if past else "sein"
    if verb and clause.passive:
        infinitive, end, finite = f"{verb.de_participle} werden", [verb.de_participle], "wurde" if past else "werden"
    elif verb:
        infinitive, end, finite = verb.de_prefix + verb.de, [verb.de_participle], "sein" if verb.de_sein else "haben"
    if clause.tense == "future":
        return _FORMS["werden"][person], "", [infinitive]
    if clause.modal:
        modal = (_MODAL_PAST if past or clause.modal == "should" else _MODAL)[clause.modal]
        return _FORMS[modal][person], "", [infinitive]
    if verb and not past and not clause.passive:
        return verb.de_present[person], verb.de_prefix, []
    return _FORMS[finite][person], "", end


# The parts between the finite verb and the rest of the verb, in this order.
_FIELD = "subject,sich,pronoun,time,often,recipient,object,nicht,agent,manner,place,goal,predicate,asked"


def german_clause(clause: tree.Clause, order: str) -> list[str]:
    """Finite verb `second` (main clause), `first` (question), `last` (under another clause) or `zu`."""
    verb = clause.verb
    finite, prefix, end = german_verbs(clause)
    case, prep = (verb.de_case, verb.de_prep) if verb else ("A", "")
    kein = isinstance(clause.object, tree.NP) and clause.object.det == "a" and not (clause.object.number or prep)
    parts: dict[str, list[str]] = {role: [] for role in _FIELD.split(",")}
    parts["subject"] = german_thing(clause.subject, "N")
    if verb and verb.de_reflexive:
        parts["sich"] = [("mich", "dich", "sich", "uns", "sich")[tree.features(clause.subject).person]]
    if clause.object:
        short = isinstance(clause.object, tree.Pronoun) and not prep and clause.front != "object"
        role = "pronoun" if short else "goal" if prep and clause.front != "object" else "object"
        parts[role] = (
            german_phrase(prep, case, clause.object) if prep else german_thing(clause.object, case, clause.negated)
        )
    if clause.recipient:
        role = "pronoun" if isinstance(clause.recipient, tree.Pronoun) else "recipient"
        parts[role] = german_thing(clause.recipient, "D")
    for role in ("time", "often", "manner", "place", "asked"):
        parts[role] = german_adverbial(getattr(clause, role))
    parts["nicht"] = ["nicht"] if clause.negated and not kein else []
    parts["agent"] = german_phrase("von", "D", clause.agent)
    parts["predicate"] = german_predicate(clause.predicate) if clause.predicate else []
    if order != "last" and not isinstance(clause.subject, tree.Pronoun):
        # Gestern hat ihm der Mann geholfen; but: weil der Mann ihm hilft, gestern hat er ihm geholfen
        dative = parts.pop("pronoun") if case == "D" or clause.recipient else []
        parts = {"sich": parts.pop("sich") + dative, **parts}
    first = parts.pop(clause.front) if clause.front else []
    if order == "zu" or (order == "second" and not first):
        first = parts.pop("subject")
    middle = [word for words in parts.values() for word in words]
    after = german_sub(clause.complement) if clause.complement else []
    if order == "zu" and verb:
        infinitive = verb.de_prefix + "zu" + verb.de if verb.de_prefix else "zu " + verb.de
        return [*middle, *infinitive.split(), *after]
    if order == "last":
        return [*first, *middle, *end, prefix + finite, *after]
    return [*first, finite, *middle, *([prefix] if prefix else []), *end, *after]


def german_predicate(predicate: tree.Quality) -> list[str]:
    """sehr alt; älter als die Katze"""
    if predicate.than:
        return [predicate.adjective.de_more, "als", *german_thing(predicate.than, "N")]
    return [*german_adverbial(predicate.degree), predicate.adjective.de]


def german_sub(sub: tree.Sub) -> list[str]:
    """weil er schläft; dass er schläft; zu schlafen: with its commas"""
    order = "zu" if sub.infinitive else "last"
    return [",", *sub.link.de.split(), *german_clause(sub.clause, order), ","]


def german(sentence: tree.Sentence) -> str:
    """The sentence in German."""
    fronted = sentence.sub_first or (sentence.question and not sentence.main.front)
    words = german_clause(sentence.main, "first" if fronted else "second")
    if sentence.sub:
        sub = german_sub(sentence.sub)
        words = [*sub, *words] if sentence.sub_first else [*words, *sub]
    if sentence.joined:
        words += [",", *sentence.joined.link.de.split(), *german_clause(sentence.joined.clause, "second")]
    return tree.finish(words, "?" if sentence.question else ".")
