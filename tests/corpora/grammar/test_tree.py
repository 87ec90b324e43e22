"""Each phenomenon of the grammar: an explicit tree, and what a person would say for it in three languages."""

import pytest

from repro.corpora.grammar import author
from repro.corpora.grammar import lexicon as lex
from repro.corpora.grammar.author import ABOUT, ASKED, NEAR, WITH
from repro.corpora.grammar.english import english, english_number
from repro.corpora.grammar.french import french, french_number
from repro.corpora.grammar.german import german, german_number, german_present, german_thing
from repro.corpora.grammar.tree import (
    NP,
    And,
    Clause,
    Fixed,
    Locative,
    PersonName,
    Phrase,
    Pronoun,
    Quality,
    Relative,
    Sentence,
    Sub,
    What,
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


ME, YOU, HE, SHE, WE, THEY = map(Pronoun, ("I", "you", "he", "she", "we", "they"))
YESTERDAY, TOMORROW = Fixed("yesterday", "gestern", "hier"), Fixed("tomorrow", "morgen", "demain")
OFTEN, NEVER = author.OFTEN[0], author.OFTEN[2]
BECAUSE, THAT = author.LINKS[0], Fixed("that", "dass", "que")
DOG, CAT, TABLE = np("dog"), np("cat"), np("table", compound=modifier("kitchen"))
NOMINATIVE_GAP = Relative(noun("man"))
ON, ONTO = (lex.Prep(NEAR[0][0], NEAR[0][1], case, NEAR[0][2]) for case in "DA")


def said(*clause, **more):
    """A sentence of one clause."""
    return Sentence(Clause(*clause, **more))


def asked(*clause, **more):
    """A question of one clause."""
    return Sentence(Clause(*clause, **more), question=True)


# Each phenomenon of the grammar, built from an explicit tree and translated by hand.
CHECKED = {
    "verb second with inversion, separable participle": (
        said(np("man"), verb("close"), "past", object=np("door"), time=YESTERDAY, front="time"),
        "Yesterday, the man closed the door.",
        "Gestern hat der Mann die Tür zugemacht.",
        "Hier, l'homme a fermé la porte.",
    ),
    "separable prefix at the end; infinitive at the end in a future": (
        Sentence(
            Clause(HE, verb("invite"), object=np("friend", "my")),
            joined=Sub(author.JOINS[1], Clause(SHE, verb("arrive"), "future", time=TOMORROW)),
        ),
        "He invites my friend, but she will arrive tomorrow.",
        "Er lädt meine Freundin ein, aber sie wird morgen ankommen.",
        "Il invite mon amie, mais elle arrivera demain.",
    ),
    "verb last; a pronoun takes the gender of its antecedent (Hund m, chien m)": (
        Sentence(
            Clause(SHE, verb("find"), "past", object=DOG),
            Sub(BECAUSE, Clause(Pronoun("it", DOG), None, "past", predicate=Quality(adjective("white")))),
        ),
        "She found the dog because it was white.",
        "Sie hat den Hund gefunden, weil er weiß war.",
        "Elle a trouvé le chien parce qu'il était blanc.",
    ),
    "the same sentence of a door (Tür f, porte f)": (
        Sentence(
            Clause(SHE, verb("open"), "past", object=(door := np("door"))),
            Sub(BECAUSE, Clause(Pronoun("it", door), None, "past", predicate=Quality(adjective("white")))),
        ),
        "She opened the door because it was white.",
        "Sie hat die Tür geöffnet, weil sie weiß war.",
        "Elle a ouvert la porte parce qu'elle était blanche.",
    ),
    "a subordinate clause first, then inversion": (
        Sentence(
            Clause(ME, verb("sleep")), Sub(author.LINKS[-1], Clause(YOU, verb("read"), object=np("book", "a"))), True
        ),
        "If you read a book, I sleep.",
        "Wenn du ein Buch liest, schlafe ich.",
        "Si tu lis un livre, je dors.",
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
    "never": (
        said(YOU, verb("read"), often=NEVER, object=np("letter", "a")),
        "You never read a letter.",
        "Du liest nie einen Brief.",
        "Tu ne lis jamais de lettre.",
    ),
    "no: kein and aucun ... ne": (
        said(np("boy", "no"), verb("get", en_particle="up"), "past"),
        "No boy got up.",
        "Kein Junge ist aufgestanden.",
        "Aucun garçon ne s'est levé.",
    ),
    "two objects change places": (
        said(ME, verb("give"), object=np("cake", "this"), recipient=np("guest", plural=True)),
        "I give the guests this cake.",
        "Ich gebe den Gästen diesen Kuchen.",
        "Je donne ce gâteau aux invités.",
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
    "motion takes the accusative, sein, être": (
        said(np("sister", plural=True), verb("go"), "past", place=Locative(np("market"), toward=True)),
        "The sisters went to the market.",
        "Die Schwestern sind auf den Markt gegangen.",
        "Les sœurs sont allées au marché.",
    ),
    "rest takes the dative: the same place": (
        said(np("sister"), verb("work"), place=Locative(np("market"))),
        "The sister works at the market.",
        "Die Schwester arbeitet auf dem Markt.",
        "La sœur travaille au marché.",
    ),
    "auf with the accusative: where it is put": (
        said(SHE, verb("put"), "past", object=np("knife", "a"), place=Phrase(ONTO, TABLE)),
        "She put a knife on the kitchen table.",
        "Sie hat ein Messer auf den Küchentisch gelegt.",
        "Elle a mis un couteau sur la table de cuisine.",
    ),
    "auf with the dative: where it is": (
        said(np("knife"), None, place=Phrase(ON, TABLE)),
        "The knife is on the kitchen table.",
        "Das Messer ist auf dem Küchentisch.",
        "Le couteau est sur la table de cuisine.",
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
    "modal verb, infinitive last": (
        said(np("student", "this"), verb("pick", en_particle="up"), "past", "must", object=np("box")),
        "This student had to pick up the box.",
        "Dieser Student musste die Schachtel aufheben.",
        "Cet étudiant a dû ramasser la boîte.",
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
    "passive": (
        said(np("letter", plural=True), verb("write"), "past", passive=True, agent=np("judge", "a")),
        "The letters were written by a judge.",
        "Die Briefe wurden von einem Richter geschrieben.",
        "Les lettres ont été écrites par un juge.",
    ),
    "comparison": (
        said(np("soup", "our"), None, predicate=Quality(adjective("good"), None, np("cake", "your"))),
        "Our soup is better than your cake.",
        "Unsere Suppe ist besser als dein Kuchen.",
        "Notre soupe est meilleure que ton gâteau.",
    ),
    "question: do-support, which in the accusative": (
        asked(np("farmer"), verb("look", en_prep="for"), "past", object=np("horse", "which"), front="object"),
        "Which horse did the farmer look for?",
        "Welches Pferd hat der Bauer gesucht?",
        "Quel cheval est-ce que le paysan a cherché ?",
    ),
    "what; n-declension": (
        asked(np("boy", "a"), verb("show"), object=What(), recipient=np("soldier", "the"), front="object"),
        "What does a boy show the soldier?",
        "Was zeigt ein Junge dem Soldaten?",
        "Qu'est-ce qu'un garçon montre au soldat ?",
    ),
    "an indirect question; reflexive verbs": (
        said(
            ME,
            reporting("know"),
            negated=True,
            complement=Sub(Fixed("whether", "ob", "si"), Clause(HE, verb("remember"), object=np("war"))),
        ),
        "I do not know whether he remembers the war.",
        "Ich weiß nicht, ob er sich an den Krieg erinnert.",
        "Je ne sais pas s'il se souvient de la guerre.",
    ),
    "coordination: plural verb, masculine wins": (
        said(And(np("mother"), np("father", "her")), None, predicate=Quality(adjective("happy")), negated=True),
        "The mother and her father are not happy.",
        "Die Mutter und ihr Vater sind nicht glücklich.",
        "La mère et son père ne sont pas heureux.",
    ),
    "preposition before two things": (
        said(ME, verb("talk", en_prep="about"), object=And(np("poem"), np("letter", plural=True))),
        "I talk about the poem and the letters.",
        "Ich spreche über das Gedicht und die Briefe.",
        "Je parle du poème et des lettres.",
    ),
    "de swallows des": (
        said(WE, verb("dream", en_prep="of"), object=np("bird", "a", "big", plural=True)),
        "We dream of big birds.",
        "Wir träumen von großen Vögeln.",
        "Nous rêvons de grands oiseaux.",
    ),
    "phrases inside the noun phrase": (
        said(
            np("man", "a", phrase=Phrase(WITH, np("hat", "a", "black"))),
            verb("read"),
            often=OFTEN,
            object=np("book", "this", plural=True, phrase=Phrase(ABOUT, np("fox", plural=True))),
        ),
        "A man with a black hat often reads these books about the foxes.",
        "Ein Mann mit einem schwarzen Hut liest oft diese Bücher über die Füchse.",
        "Un homme avec un chapeau noir lit souvent ces livres sur les renards.",
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
