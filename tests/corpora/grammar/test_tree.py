"""Each phenomenon of the grammar: a sentence of the corpus, and what a person would say for it in three languages."""

from functools import cache
from itertools import islice

import pytest

from repro.corpora.grammar import lexicon as lex
from repro.corpora.grammar.french import french_number
from repro.corpora.grammar.generate import sentences
from repro.corpora.grammar.german import german_thing
from repro.corpora.grammar.tree import NP, PersonName


@cache
def drawn():
    return list(islice(sentences(3), 3_000))


# read by hand; the digest of these sentences (`test_generate.py`) holds all others
CHECKED = {
    "verb last; a pronoun takes the gender of its antecedent": """
        Yesterday, the young boy saw a key because it was beautiful.
        Gestern hat der junge Junge einen Schlüssel gesehen, weil er schön war.
        Hier, le jeune garçon a vu une clé parce qu'elle était belle.""",
    "dative verb; relative pronoun in the dative; que": """
        A father that the aunt did not help loves Daniel.
        Ein Vater, dem die Tante nicht geholfen hat, liebt Daniel.
        Un père que la tante n'a pas aidé aime Daniel.""",
    "relative pronoun after a preposition; dont; passive": """
        Many newspapers that you talk about are read by a soldier every day.
        Viele Zeitungen, über die du sprichst, werden jeden Tag von einem Soldaten gelesen.
        Beaucoup de journaux dont tu parles sont lus par un soldat chaque jour.""",
    "whose: deren and a strong ending, dont and an article": """
        My two students whose brave dog ate our egg slept.
        Meine zwei Studenten, deren mutiger Hund unser Ei gegessen hat, haben geschlafen.
        Mes deux étudiants dont le chien courageux a mangé notre œuf ont dormi.""",
    "participle after a relative object": """
        With every daughter, the glass flowers that she carried disappeared.
        Mit jeder Tochter sind die Glasblumen, die sie getragen hat, verschwunden.
        Avec chaque fille, les fleurs en verre qu'elle a portées ont disparu.""",
    "where: a relative clause of place": """
        Schools where this man looked at the small dogs were small.
        Schulen, wo dieser Mann die kleinen Hunde angesehen hat, waren klein.
        Des écoles où cet homme a regardé les petits chiens étaient petites.""",
    "kein, ne ... pas de, any": """
        My proud sister did not wash any trains one week ago, but she loves them.
        Meine stolze Schwester hat vor einer Woche keine Züge gewaschen, aber sie liebt sie.
        Ma sœur fière n'a pas lavé de trains il y a une semaine, mais elle les aime.""",
    "nicht, clitic pronoun and participle": """
        Daniel could cut the potato on the windows even if Anna did not listen to her.
        Daniel konnte die Kartoffel auf den Fenstern schneiden, auch wenn Anna ihr nicht zugehört hat.
        Daniel a pu couper la pomme de terre sur les fenêtres même si Anna ne l'a pas écoutée.""",
    "no: kein and aucun ... ne": """
        No man will call a polite child.
        Kein Mann wird ein höfliches Kind anrufen.
        Aucun homme n'appellera un enfant poli.""",
    "dative pronoun before an inverted subject; indirect clitic": """
        Yesterday, the gardener gave him the forty-five farm sausages that the woman bakes.
        Gestern hat ihm der Gärtner die fünfundvierzig Bauernwürste, die die Frau backt, gegeben.
        Hier, le jardinier lui a donné les quarante-cinq saucisses de ferme que la femme prépare.""",
    "compound; adjectives before and after": """
        Martin's big daughter must give a big singer the old white leather coat.
        Martins große Tochter muss einer großen Sängerin den alten weißen Ledermantel geben.
        La grande fille de Martin doit donner le vieux manteau en cuir blanc à une grande chanteuse.""",
    "genitive, elision": """
        The old gardener's friend knew that the proud men met her secretly.
        Die Freundin des alten Gärtners hat gewusst, dass die stolzen Männer sie heimlich getroffen haben.
        L'amie du vieux jardinier a su que les hommes fiers l'ont rencontrée en secret.""",
    "a name as owner leaves a strong ending": """
        Maria's big plastic car left.
        Marias großes Plastikauto ist abgefahren.
        La grande voiture en plastique de Maria est partie.""",
    "its: what is an animal's own": """
        A wild horse ate its good eggs.
        Ein wildes Pferd hat seine guten Eier gegessen.
        Un cheval sauvage a mangé ses bons œufs.""",
    "infinitive clause with zu inside the verb": """
        The queen tries to get up secretly.
        Die Königin versucht, heimlich aufzustehen.
        La reine essaye de se lever en secret.""",
    "two things after a verb with a preposition": """
        The young boy looked for the door and the suitcase.
        Der junge Junge hat die Tür und den Koffer gesucht.
        Le jeune garçon a cherché la porte et la valise.""",
}


@pytest.mark.parametrize("said", CHECKED.values(), ids=CHECKED)
def test_a_sentence_is_laid_out_as_a_person_would(said):
    assert tuple(line.strip() for line in said.strip().split("\n")) in drawn()


def test_numerals():
    """The tables of `words.txt`: units first in German, vigesimal and with et in French."""
    numerals = zip(lex.ENGLISH_NUMBERS, lex.GERMAN_NUMBERS, lex.FRENCH_NUMBERS, strict=True)
    assert [one for n, one in enumerate(numerals) if n in (21, 71, 80, 97)] == [
        ("twenty-one", "einundzwanzig", "vingt et un"),
        ("seventy-one", "einundsiebzig", "soixante et onze"),
        ("eighty", "achtzig", "quatre-vingts"),
        ("ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept"),
    ]
    assert (french_number(21, feminine=True), french_number(71, feminine=True)) == ("vingt et une", "soixante et onze")
    assert all(len({*numbers}) == 100 for numbers in (lex.ENGLISH_NUMBERS, lex.GERMAN_NUMBERS, lex.FRENCH_NUMBERS))


def np(en, det, **more):
    """The old thing, with this determiner."""
    [noun] = [one for one in lex.nouns if one.en[0] == en]
    [old] = [one for one in lex.adjectives if one.en == "old"]
    return NP(noun, det, adjectives=(old,), **more)


def test_a_noun_and_its_adjective_in_all_four_cases():
    forms = {
        ("man", "the"): "der alte Mann|den alten Mann|dem alten Mann|des alten Mannes",
        ("child", "my"): "mein altes Kind|mein altes Kind|meinem alten Kind|meines alten Kindes",
        ("woman", "this"): "diese alte Frau|diese alte Frau|dieser alten Frau|dieser alten Frau",
        ("boy", "a"): "ein alter Junge|einen alten Jungen|einem alten Jungen|eines alten Jungen",
    }
    for (en, det), expected in forms.items():
        assert "|".join(" ".join(german_thing(np(en, det), case)) for case in "NADG") == expected
    hers = np("dog", "the", owner=PersonName("Anna", "she"))
    assert [" ".join(german_thing(hers, case)) for case in "NAD"] == [
        "Annas alter Hund", "Annas alten Hund", "Annas altem Hund",
    ]  # fmt: skip
    many = np("child", "many", plural=True)
    assert [" ".join(german_thing(many, case)) for case in "NAD"] == [
        "viele alte Kinder", "viele alte Kinder", "vielen alten Kindern",
    ]  # fmt: skip
