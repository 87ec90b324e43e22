"""German: verb second and verb last, separable verbs, cases, genders, strong, weak and mixed endings.

Weil der alte Hund müde war, hat die Frau, der er folgt, ihn nicht mitgebracht.
(Because the old dog was tired, the woman that he follows did not bring him.)
"""

from repro.corpora.grammar import tree
from repro.corpora.grammar.lexicon import DETERMINERS, SMALL, TENS, WORDS

_IRREGULAR = {line.split()[0]: line.split()[1:] for line in WORDS["german_verbs"]}


# Rows: case. Columns: masculine, feminine, neuter, plural.
_COLUMN = {"m": 0, "f": 1, "n": 2, "p": 3}
_DER = {"N": "der die das die", "A": "den die das die", "D": "dem der dem den", "G": "des der des der"}
_STRONG = {"N": "er e es e", "A": "en e es e", "D": "em er em en", "G": "en er en er"}
_WEAK = {"N": "e e e en", "A": "en e e en", "D": "en en en en", "G": "en en en en"}
_MIXED = {"N": "er e es en", "A": "en e es en", "D": "en en en en", "G": "en en en en"}
_DIESER = {"N": "er e es e", "A": "en e es e", "D": "em er em en", "G": "es er es er"}
_EIN = {"N": "- e - e", "A": "en e - e", "D": "em er em en", "G": "es er es er"}
_RELATIVE = {**_DER, "D": "dem der dem denen", "G": "dessen deren dessen deren"}
FUSED = {"an dem": "am", "an das": "ans", "in dem": "im", "in das": "ins", "von dem": "vom"}
FUSED |= {"zu dem": "zum", "zu der": "zur", "bei dem": "beim"}
_DU = {"hält": "hältst", "lädt": "lädst"}


def _ending(table: dict[str, str], case: str, gender: str) -> str:
    return table[case].split()[_COLUMN[gender]].replace("-", "")


def german_determiner(word: str, case: str, gender: str) -> tuple[str, dict[str, str]]:
    """The determiner's form and the table of endings for the adjectives after it (weak, mixed, strong).

    mit + the + masculine: dem, weak (dem alten Hund); a + nominative neuter: ein, mixed (ein altes Haus).
    """
    if word == "der":
        return _ending(_DER, case, gender), _WEAK
    if word in ("dies", "jed", "all", "welch"):
        return word + _ending(_DIESER, case, gender), _WEAK
    if word in ("viel", "einig"):
        return word + _ending(_DIESER, case, gender), _STRONG
    if word in ("ein", "kein", "mein", "dein", "sein", "ihr", "unser"):
        return ("" if word == "ein" and gender == "p" else word + _ending(_EIN, case, gender)), (
            _STRONG if word == "ein" and gender == "p" else _MIXED
        )
    return word, _STRONG  # nothing, a numeral, a genitive before the noun


def german_present(infinitive: str, third: str, person: int) -> str:
    """Finite form for ich, du, er, wir, sie (0 to 4)."""
    if infinitive in _IRREGULAR:
        forms = _IRREGULAR[infinitive]
        return forms[min(person, 3)]
    if person >= 3:
        return infinitive
    if person == 2:
        return third
    if person == 1:
        stem = third.removesuffix("t")
        return _DU.get(third) or stem + ("t" if stem.endswith(("s", "ß", "z")) else "st")
    if infinitive.endswith("eln"):
        return infinitive[:-3] + "le"
    return infinitive[:-1] + "e" if infinitive.endswith("ern") else infinitive[:-2] + "e"


def german_preterite(stem: str, person: int) -> str:
    """war, konnte, wurde: the few verbs that the corpus uses in this tense."""
    if stem == "war":
        return stem + ("", "st", "", "en", "en")[person]
    return stem + ("", "st", "", "n", "n")[person]


def german_number(n: int) -> str:
    """23: dreiundzwanzig, units first"""
    if n < 20:
        return SMALL[1][n]
    return (SMALL[1][n % 10] + "und" if n % 10 else "") + TENS[1][n // 10]


_DE_PRONOUN = {
    "I": "ich mich mir", "you": "du dich dir", "he": "er ihn ihm", "she": "sie sie ihr", "we": "wir uns uns",
    "they": "sie sie ihnen", "m": "er ihn ihm", "f": "sie sie ihr", "n": "es es ihm", "p": "sie sie ihnen",
}  # fmt: skip

_DE_DET = {en: de for en, de, _ in DETERMINERS} | {"": ""}


def german_thing(thing: tree.Thing, case: str, negated: bool = False) -> list[str]:
    """The noun phrase in its case; `negated` turns an indefinite article into kein."""
    agreement = tree.features(thing)
    match thing:
        case tree.Pronoun(word, of):
            forms = _DE_PRONOUN[agreement.de if of and word in ("it", "they") else word].split()
            return [forms["NAD".index(case)]]
        case tree.PersonName(en):
            return [en]
        case tree.Relative():
            return [_ending(_RELATIVE, case, agreement.de)]
        case tree.Who():
            return [{"N": "wer", "A": "wen", "D": "wem"}[case]]
        case tree.What():
            return ["was"]
        case tree.And(first, second):
            return [*german_thing(first, case), "und", *german_thing(second, case)]
    noun, after = thing.noun, []
    det, before = _DE_DET[thing.det], ""
    match thing.owner:
        case tree.Pronoun() as owner:  # its
            det = "ihr" if tree.features(owner).de == "f" else "sein"
        case tree.Relative() as owner:
            before, det = german_thing(owner, "G")[0], ""
        case tree.PersonName(en):
            before, det = en + "s", ""
        case tree.NP() as owner:
            after = german_thing(owner, "G")
    if det == "ein" and negated and not thing.number:
        det = "kein"
    if thing.number and det == "ein":
        det = ""
    word, endings = german_determiner(det, case, agreement.de)
    words = [w for w in (before, word, german_number(thing.number) if thing.number else "") if w]
    words += [adjective.de_stem + _ending(endings, case, agreement.de) for adjective in thing.adjectives]
    form = noun.german(case, thing.plural)
    words += [thing.compound.de + form[0].lower() + form[1:] if thing.compound else form, *after]
    words += german_adverbial(thing.phrase) if thing.phrase else []
    words += [",", *german_clause(thing.relative, "last"), ","] if thing.relative else []
    return words


def german_phrase(prep: str, case: str, thing: tree.Thing) -> list[str]:
    """Preposition and noun, fused where German fuses them: in dem -> im."""
    words = german_thing(thing, case)
    if isinstance(thing, tree.NP) and thing.det == "the" and f"{prep} {words[0]}" in FUSED:
        return [FUSED[f"{prep} {words[0]}"], *words[1:]]
    return [*prep.split(), *words]


def german_adverbial(adverbial: tree.Adverbial) -> list[str]:
    """gestern; in der Schule, in die Schule; wegen des Sturms"""
    match adverbial:
        case tree.Fixed(_, de):
            return de.split()
        case tree.Locative(thing, toward):
            prep = thing.noun.at[2 if toward else 1]
            return german_phrase(prep, "A" if toward and prep != "zu" else "D", thing)
        case tree.Phrase(prep, thing):
            return german_phrase(prep.de, prep.case, thing)


_DE_MODAL = {"can": "können", "must": "müssen", "want": "wollen", "should": "sollen"}
_DE_MODAL_PAST = {"can": "konnte", "must": "musste", "want": "wollte", "should": "sollte"}


def german_verbs(clause: tree.Clause) -> tuple[str, str, list[str]]:
    """Finite verb, separable prefix, what waits at the end: (kommt, an, []), (ist, "", [angekommen])."""
    verb, person = clause.verb, tree.features(clause.subject).person
    present = german_present
    if verb is None:
        infinitive = "sein"
    elif clause.passive:
        infinitive = verb.de_participle + " werden"
    else:
        infinitive = verb.de_prefix + verb.de
    if clause.tense == "future":
        return present("werden", "", person), "", [infinitive]
    if clause.modal == "should" or (clause.modal and clause.tense == "past"):
        return german_preterite(_DE_MODAL_PAST[clause.modal], person), "", [infinitive]
    if clause.modal:
        return present(_DE_MODAL[clause.modal], "", person), "", [infinitive]
    past = clause.tense == "past"
    if verb is None:
        return german_preterite("war", person) if past else present("sein", "", person), "", []
    if clause.passive:
        finite = german_preterite("wurde", person) if past else present("werden", "", person)
        return finite, "", [verb.de_participle]
    if past:
        return present("sein" if verb.de_sein else "haben", "", person), "", [verb.de_participle]
    return present(verb.de, verb.de_present, person), verb.de_prefix, []


# The parts between the finite verb and the rest of the verb, in this order.
_FIELD = "subject,sich,pronoun,time,often,recipient,object,nicht,agent,manner,place,goal,predicate,asked"


def german_clause(clause: tree.Clause, order: str) -> list[str]:
    """Finite verb `second` (main clause), `first` (question), `last` (under another clause) or `zu`."""
    verb = clause.verb
    finite, prefix, end = german_verbs(clause)
    case, prep = (verb.de_case, verb.de_prep) if verb else ("A", "")
    person = tree.features(clause.subject).person
    kein = isinstance(clause.object, tree.NP) and clause.object.det == "a" and not (clause.object.number or prep)
    parts: dict[str, list[str]] = {role: [] for role in _FIELD.split(",")}
    parts["subject"] = german_thing(clause.subject, "N")
    if verb and verb.de_reflexive:
        parts["sich"] = [("mich", "dich", "sich", "uns", "sich")[person]]
    if clause.object:
        object_ = (
            german_phrase(prep, case, clause.object) if prep else german_thing(clause.object, case, clause.negated)
        )
        short = isinstance(clause.object, tree.Pronoun) and not prep and clause.front != "object"
        parts["pronoun" if short else "object" if not prep or clause.front == "object" else "goal"] = object_
    if clause.recipient:
        parts["pronoun" if isinstance(clause.recipient, tree.Pronoun) else "recipient"] = german_thing(
            clause.recipient, "D"
        )
    parts["time"] = german_adverbial(clause.time) if clause.time else []
    parts["often"] = german_adverbial(clause.often) if clause.often else []
    parts["nicht"] = ["nicht"] if clause.negated and not kein else []
    parts["agent"] = german_phrase("von", "D", clause.agent) if clause.agent else []
    parts["manner"] = german_adverbial(clause.manner) if clause.manner else []
    parts["place"] = german_adverbial(clause.place) if clause.place else []
    parts["predicate"] = german_predicate(clause.predicate) if clause.predicate else []
    parts["asked"] = clause.asked.de.split() if clause.asked else []
    if order != "last" and not isinstance(clause.subject, tree.Pronoun):
        # Gestern hat ihm der Mann geholfen; but: weil der Mann ihm hilft, gestern hat er ihm geholfen
        dative = parts.pop("pronoun") if case == "D" or clause.recipient else []
        parts = {"sich": parts.pop("sich") + dative, **parts}
    first = parts.pop(clause.front) if clause.front else []
    if order == "second" and not first:
        first = parts.pop("subject")
    if order == "zu":
        del parts["subject"]
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
    return [*(predicate.degree.de.split() if predicate.degree else []), predicate.adjective.de]


def german_sub(sub: tree.Sub) -> list[str]:
    """weil er schläft; dass er schläft; zu schlafen: with its commas"""
    order = "zu" if sub.infinitive else "last"
    return [",", *sub.link.de.split(), *german_clause(sub.clause, order), ","]


def german(sentence: tree.Sentence) -> str:
    """The sentence in German."""
    fronted = bool(sentence.sub and sentence.sub_first)
    words = german_clause(
        sentence.main, "first" if fronted or (sentence.question and not sentence.main.front) else "second"
    )
    if sentence.sub:
        sub = german_sub(sentence.sub)
        words = [*sub, *words] if sentence.sub_first else [*words, *sub]
    if sentence.joined:
        words += [",", *sentence.joined.link.de.split(), *german_clause(sentence.joined.clause, "second")]
    return tree.finish(words, "?" if sentence.question else ".")
