"""Each phenomenon of the grammar: an explicit tree, and what a person would say for it in three languages."""

import pytest

from repro.corpora.grammar import author
from repro.corpora.grammar import lexicon as lex
from repro.corpora.grammar.author import ASKED
from repro.corpora.grammar.english import english, english_number
from repro.corpora.grammar.french import french, french_number
from repro.corpora.grammar.german import german, german_number, german_present, german_thing
from repro.corpora.grammar.tree import (
    NP,
    And,
    Clause,
    Fixed,
    PersonName,
    Pronoun,
    Quality,
    Relative,
    Sentence,
    Sub,
)


def one(items, en, **also):
    """The word of the lexicon with this English form (`also` tells `look for` from `look at`)."""
    (found,) = [x for x in items if x.en == en and all(getattr(x, k) == v for k, v in also.items())]
    return found


def noun(en):
    return one(lex.nouns, en)


def adjective(en):
    return one(lex.adjectives, en)


def verb(en, **also):
    return one(lex.verbs, en, **{"en_particle": "", "en_prep": "", **also})


def reporting(en):
    return next(v for _, v in lex.clause_verbs if v.en == en)


def np(en, det="the", *adjectives, **more):
    return NP(noun(en), det, adjectives=tuple(map(adjective, adjectives)), **more)


def modifier(en):
    return one(lex.modifiers, en)


ME, HE, SHE, WE, THEY = map(Pronoun, ("I", "he", "she", "we", "they"))
YESTERDAY = Fixed("yesterday", "gestern", "hier")
BECAUSE = author.LINKS[0]
DOG, CAT = np("dog"), np("cat")
NOMINATIVE_GAP = Relative(noun("man"))


def said(*clause, **more):
    """A sentence of one clause."""
    return Sentence(Clause(*clause, **more))


# Phenomena that a sample seldom shows, each built from an explicit tree and translated by hand; the digest of the
# sample (`test_generate.py`) holds the others.
CHECKED = {
    "verb last; a pronoun takes the gender of its antecedent (Hund m, chien m)": (
        Sentence(
            Clause(SHE, verb("find"), "past", object=DOG),
            Sub(BECAUSE, Clause(Pronoun("it", DOG), None, "past", predicate=Quality(adjective("white")))),
        ),
        "She found the dog because it was white.",
        "Sie hat den Hund gefunden, weil er weiß war.",
        "Elle a trouvé le chien parce qu'il était blanc.",
    ),
    "dative verb; relative pronoun in the dative; que": (
        said(
            np("man", "the", relative=Clause(SHE, verb("help"), object=NOMINATIVE_GAP, front="object")),
            verb("thank"),
            object=np("child", "my", plural=True),
        ),
        "The man that she helps thanks my children.",
        "Der Mann, dem sie hilft, dankt meinen Kindern.",
        "L'homme qu'elle aide remercie mes enfants.",
    ),
    "relative pronoun after a preposition; dont": (
        said(
            np(
                "story",
                relative=Clause(WE, verb("talk", en_prep="about"), object=Relative(noun("story")), front="object"),
            ),
            None,
            predicate=Quality(adjective("long"), author.DEGREES[0]),
        ),
        "The story that we talk about is very long.",
        "Die Geschichte, über die wir sprechen, ist sehr lang.",
        "L'histoire dont nous parlons est très longue.",
    ),
    "whose: deren and a strong ending, dont and an article": (
        said(
            np(
                "woman",
                relative=Clause(np("dog", "the", "old", owner=Relative(noun("woman"))), verb("sleep"), front="subject"),
            ),
            verb("laugh"),
            "past",
        ),
        "The woman whose old dog sleeps laughed.",
        "Die Frau, deren alter Hund schläft, hat gelacht.",
        "La femme dont le vieux chien dort a ri.",
    ),
    "participle after a relative object": (
        said(
            np(
                "apple",
                plural=True,
                relative=Clause(HE, verb("eat"), "past", object=Relative(noun("apple"), True), front="object"),
            ),
            None,
            "past",
            predicate=Quality(adjective("small")),
        ),
        "The apples that he ate were small.",
        "Die Äpfel, die er gegessen hat, waren klein.",
        "Les pommes qu'il a mangées étaient petites.",
    ),
    "where: a relative clause of place": (
        said(
            ME,
            verb("see"),
            object=np("house", "a", "big", relative=Clause(THEY, verb("work"), asked=ASKED[0], front="asked")),
        ),
        "I see a big house where they work.",
        "Ich sehe ein großes Haus, wo sie arbeiten.",
        "Je vois une grande maison où ils travaillent.",
    ),
    "kein, ne ... pas de, any": (
        said(HE, verb("buy"), negated=True, object=np("apple", "a", "red", plural=True)),
        "He does not buy any red apples.",
        "Er kauft keine roten Äpfel.",
        "Il n'achète pas de pommes rouges.",
    ),
    "nicht, clitic pronoun and participle": (
        said(
            np("friend", "his", plural=True),
            verb("see"),
            "past",
            negated=True,
            object=Pronoun("they", np("pear", plural=True)),
        ),
        "His friends did not see them.",
        "Seine Freundinnen haben sie nicht gesehen.",
        "Ses amies ne les ont pas vues.",
    ),
    "no: kein and aucun ... ne": (
        said(np("boy", "no"), verb("get", en_particle="up"), "past"),
        "No boy got up.",
        "Kein Junge ist aufgestanden.",
        "Aucun garçon ne s'est levé.",
    ),
    "dative pronoun before an inverted subject; indirect clitic": (
        said(
            np("woman"),
            verb("bring", en_particle="back"),
            "past",
            object=np("key"),
            recipient=HE,
            time=YESTERDAY,
            front="time",
        ),
        "Yesterday, the woman brought him back the key.",
        "Gestern hat ihm die Frau den Schlüssel zurückgebracht.",
        "Hier, la femme lui a rapporté la clé.",
    ),
    "compound; adjectives before and after; numeral with units first": (
        said(
            WE,
            verb("see"),
            object=NP(noun("door"), "the", True, (adjective("old"), adjective("red")), modifier("wooden"), 21),
        ),
        "We see the twenty-one old red wooden doors.",
        "Wir sehen die einundzwanzig alten roten Holztüren.",
        "Nous voyons les vingt et une vieilles portes en bois rouges.",
    ),
    "genitive, elision, liaison": (
        said(np("friend", owner=np("man", "the", "old")), None, predicate=Quality(adjective("tired"))),
        "The old man's friend is tired.",
        "Die Freundin des alten Mannes ist müde.",
        "L'amie du vieil homme est fatiguée.",
    ),
    "a name as owner leaves a strong ending": (
        said(np("dog", "the", "big", owner=PersonName("Anna", "she")), verb("sleep")),
        "Anna's big dog sleeps.",
        "Annas großer Hund schläft.",
        "Le grand chien d'Anna dort.",
    ),
    "its follows the owner in German, the thing in French": (
        said(CAT, verb("play", en_prep="with"), object=np("ball", "its", owner=Pronoun("it", CAT))),
        "The cat plays with its ball.",
        "Die Katze spielt mit ihrem Ball.",
        "Le chat joue avec son ballon.",
    ),
    "infinitive clause with zu inside the verb": (
        said(
            ME,
            reporting("try"),
            "past",
            complement=Sub(Fixed("", "", "de"), Clause(ME, verb("get", en_particle="up")), infinitive=True),
        ),
        "I tried to get up.",
        "Ich habe versucht, aufzustehen.",
        "J'ai essayé de me lever.",
    ),
    "preposition before two things": (
        said(ME, verb("talk", en_prep="about"), object=And(np("poem"), np("letter", plural=True))),
        "I talk about the poem and the letters.",
        "Ich spreche über das Gedicht und die Briefe.",
        "Je parle du poème et des lettres.",
    ),
}


@pytest.mark.parametrize(("tree", "en", "de", "fr"), CHECKED.values(), ids=CHECKED)
def test_a_tree_is_laid_out_as_a_person_would(tree, en, de, fr):
    assert (english(tree), german(tree), french(tree)) == (en, de, fr)


@pytest.mark.parametrize(
    ("n", "en", "de", "fr"),
    [
        (8, "eight", "acht", "huit"),
        (16, "sixteen", "sechzehn", "seize"),
        (21, "twenty-one", "einundzwanzig", "vingt et un"),
        (71, "seventy-one", "einundsiebzig", "soixante et onze"),
        (80, "eighty", "achtzig", "quatre-vingts"),
        (81, "eighty-one", "einundachtzig", "quatre-vingt-un"),
        (97, "ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept"),
    ],
)
def test_numerals(n, en, de, fr):
    assert (english_number(n), german_number(n), french_number(n)) == (en, de, fr)
    assert french_number(21, "f") == "vingt et une"


@pytest.mark.parametrize(
    ("infinitive", "third", "forms"),
    [
        ("lesen", "liest", "lese liest liest lesen lesen"),
        ("warten", "wartet", "warte wartest wartet warten warten"),
        ("lächeln", "lächelt", "lächle lächelst lächelt lächeln lächeln"),
        ("erinnern", "erinnert", "erinnere erinnerst erinnert erinnern erinnern"),
        ("halten", "hält", "halte hältst hält halten halten"),
        ("wissen", "weiß", "weiß weißt weiß wissen wissen"),
    ],
)
def test_german_present(infinitive, third, forms):
    assert [german_present(infinitive, third, person) for person in range(5)] == forms.split()


def test_a_noun_and_its_adjective_in_all_four_cases():
    forms = {
        ("man", "the"): "der alte Mann|den alten Mann|dem alten Mann|des alten Mannes",
        ("child", "my"): "mein altes Kind|mein altes Kind|meinem alten Kind|meines alten Kindes",
        ("woman", "this"): "diese alte Frau|diese alte Frau|dieser alten Frau|dieser alten Frau",
        ("boy", "a"): "ein alter Junge|einen alten Jungen|einem alten Jungen|eines alten Jungen",
    }
    for (en, det), expected in forms.items():
        assert "|".join(" ".join(german_thing(np(en, det, "old"), case)) for case in "NADG") == expected
    hers = np("dog", "the", "old", owner=PersonName("Anna", "she"))
    assert [" ".join(german_thing(hers, case)) for case in "NAD"] == [
        "Annas alter Hund", "Annas alten Hund", "Annas altem Hund",
    ]  # fmt: skip
    many = np("child", "many", "old", plural=True)
    assert [" ".join(german_thing(many, case)) for case in "NAD"] == [
        "viele alte Kinder", "viele alte Kinder", "vielen alten Kindern",
    ]  # fmt: skip
