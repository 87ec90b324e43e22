"""English: do-support, agreement of the third person, a and an, 's, prepositions left at the end.

Which cake does the baker's son want to see?  The bus that he waits for did not arrive.
"""

from dataclasses import replace

from repro.corpora.grammar import tree
from repro.corpora.grammar.lexicon import english_plural

_EN_SMALL = (
    "zero one two three four five six seven eight nine ten eleven "
    "twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_EN_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety"


def english_number(n: int) -> str:
    """23: twenty-three"""
    if n < 20:
        return _EN_SMALL.split()[n]
    return _EN_TENS.split()[n // 10] + ("-" + _EN_SMALL.split()[n % 10] if n % 10 else "")


def english_third(word: str) -> str:
    """he carries, he goes, he puts"""
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    return irregular.get(word) or english_plural(word)


_OBJECT_FORM = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}


def english_thing(thing: tree.Thing, subject: bool = False) -> list[str]:
    """him; Anna; who; the man's old dog that I saw"""
    match thing:
        case tree.Pronoun(word):
            return [word if subject else _OBJECT_FORM.get(word, word)]
        case tree.PersonName(en):
            return [en]
        case tree.Relative(noun):
            return [("who" if noun.kind == "h" else "which") if subject else "that"]
        case tree.Who():
            return ["who"]
        case tree.What():
            return ["what"]
        case tree.And(first, second):
            return [*english_thing(first), "and", *english_thing(second)]
    noun = thing.noun
    words = [english_number(thing.number)] if thing.number else []
    words += [adjective.en for adjective in thing.adjectives]
    words += [thing.compound.en] if thing.compound else []
    words += [noun.en_plural if thing.plural else noun.en]
    match thing.owner, thing.det:
        case tree.Relative(), _:
            words = ["whose", *words]
        case tree.PersonName() | tree.NP() as owner, _:
            owners = english_thing(owner)
            words = [*owners[:-1], owners[-1] + "'s", *words]
        case _, "a" if not thing.plural:
            words = ["an" if words[0][0] in "aeiou" else "a", *words]
        case _, "this" if thing.plural:
            words = ["these", *words]
        case _, "all":
            words = ["all", "the", *words]
        case _, "a" | "":
            pass
        case _, det:
            words = [det, *words]
    words += english_adverbial(thing.phrase) if thing.phrase else []
    words += english_clause(thing.relative) if thing.relative else []
    return words


def english_adverbial(adverbial: tree.Adverbial) -> list[str]:
    """yesterday; to the school; because of the storm"""
    match adverbial:
        case tree.Fixed(en):
            return en.split()
        case tree.Locative(thing, toward):
            return ["to" if toward else thing.noun.at[0], *english_thing(thing)]
        case tree.Phrase(prep, thing):
            return [*prep.en.split(), *english_thing(thing)]


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


def english_clause(clause: tree.Clause, asking: bool = False) -> list[str]:
    """Subject, verb, objects, manner, place, time; `do` where a question or `not` needs it."""
    verb = clause.verb
    finite, rest = english_verbs(clause, asking and clause.front != "subject")
    subject = english_thing(clause.subject, subject=True)
    prep = [verb.en_prep] if verb and verb.en_prep and not clause.passive else []
    parts = {
        "recipient": english_thing(clause.recipient) if clause.recipient else [],
        "object": english_object(clause),
        "agent": ["by", *english_thing(clause.agent)] if clause.agent else [],
        "manner": english_adverbial(clause.manner) if clause.manner else [],
        "place": english_adverbial(clause.place) if clause.place else [],
        "time": english_adverbial(clause.time) if clause.time else [],
        "asked": [],
    }
    stranded = prep if clause.object else []
    if prep and clause.front != "object":
        parts["object"], stranded = prep + parts["object"], []
    first = []
    if clause.front == "asked" and clause.asked:
        first = clause.asked.en.split()
    elif clause.front and clause.front != "subject":
        first = parts.pop(clause.front) + ([","] if clause.front in ("time", "place") else [])
    negation = ["not"] if clause.negated else []
    often = clause.often.en.split() if clause.often else []
    # `often` stands before a full verb, after an auxiliary: often buys, can often buy, is often
    auxiliary = (
        verb is None or clause.passive or finite in ("will", "can", "could", "must", "should", "do", "does", "did")
    )
    if asking and clause.front != "subject":
        core = [finite, *subject, *negation, *often]
    elif auxiliary:
        core = [*subject, *(["cannot"] if negation and finite == "can" else [finite, *negation]), *often]
    else:
        core = [*subject, *often, finite]
    particle = [verb.en_particle] if verb and verb.en_particle else []
    if particle and (tree.is_pronoun(clause.object) or clause.recipient):  # pick it up, bring him back the book
        role = "recipient" if clause.recipient else "object"
        rest, parts[role] = [word for word in rest if word not in particle], parts[role] + particle
    predicate = english_predicate(clause.predicate) if clause.predicate else []
    words = first + core + rest + predicate
    for role in ("recipient", "object"):
        words += parts.get(role, [])
    words += stranded
    for role in ("agent", "manner", "place", "time"):
        words += parts.get(role, [])
    return words + (english_sub(clause.complement) if clause.complement else [])


def english_object(clause: tree.Clause) -> list[str]:
    """any books where the clause says not, else the object as it is"""
    words = english_thing(clause.object) if clause.object else []
    match clause.object:
        case tree.NP(det="a", plural=True, number=0) if clause.negated:  # does not buy any books
            return ["any", *words]
    return words


def english_predicate(predicate: tree.Quality) -> list[str]:
    """very old; older than the cat"""
    if predicate.than:
        return [*predicate.adjective.en_more.split(), "than", *english_thing(predicate.than)]
    return [*(predicate.degree.en.split() if predicate.degree else []), predicate.adjective.en]


def english_sub(sub: tree.Sub) -> list[str]:
    """because he sleeps; that he sleeps; to sleep"""
    if not sub.infinitive:
        return [*sub.link.en.split(), *english_clause(sub.clause)]
    bare = english_clause(replace(sub.clause, subject=tree.Pronoun("they")))  # `they` shows no ending
    return [*sub.link.en.split(), "to", *bare[1:]]


def english(sentence: tree.Sentence) -> str:
    """The sentence in English."""
    words = english_clause(sentence.main, sentence.question)
    if sentence.sub:
        sub = english_sub(sentence.sub)
        words = [*sub, ",", *words] if sentence.sub_first else [*words, *sub]
    if sentence.joined:
        words += [",", *sentence.joined.link.en.split(), *english_clause(sentence.joined.clause)]
    return tree.finish(words, "?" if sentence.question else ".")
