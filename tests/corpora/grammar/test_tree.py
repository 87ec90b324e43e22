"""Each phenomenon of the grammar: a sentence of the corpus, and what a person would say for it in three languages."""

from functools import cache
from itertools import islice

import pytest

from repro.corpora.grammar import lexicon as lex
from repro.corpora.grammar.french import french_number
from repro.corpora.grammar.generate import sentences


@cache
def drawn():
    return list(islice(sentences(3), 3_000))


# read by hand; the digest of these sentences (`test_generate.py`) holds all others
CHECKED = {
    "verb last; a pronoun takes the gender of its antecedent": """
        Yesterday, the young boy saw a key because it was beautiful.
        Gestern hat der junge Junge einen Schlüssel gesehen, weil er schön war.
        Hier, le jeune garçon a vu une clé parce qu'elle était belle.""",
    "relative pronoun after a preposition; dont; passive": """
        Many newspapers that you talk about are read by a soldier every day.
        Viele Zeitungen, über die du sprichst, werden jeden Tag von einem Soldaten gelesen.
        Beaucoup de journaux dont tu parles sont lus par un soldat chaque jour.""",
    "whose: deren and a strong ending, dont and an article": """
        My two students whose brave dog ate our egg slept.
        Meine zwei Studenten, deren mutiger Hund unser Ei gegessen hat, haben geschlafen.
        Mes deux étudiants dont le chien courageux a mangé notre œuf ont dormi.""",
    "where: a relative clause of place": """
        Schools where this man looked at the small dogs were small.
        Schulen, wo dieser Mann die kleinen Hunde angesehen hat, waren klein.
        Des écoles où cet homme a regardé les petits chiens étaient petites.""",
    "kein, ne ... pas de, any": """
        My proud sister did not wash any trains one week ago, but she loves them.
        Meine stolze Schwester hat vor einer Woche keine Züge gewaschen, aber sie liebt sie.
        Ma sœur fière n'a pas lavé de trains il y a une semaine, mais elle les aime.""",
    "dative pronoun before an inverted subject; indirect clitic": """
        Yesterday, the gardener gave him the forty-five farm sausages that the woman bakes.
        Gestern hat ihm der Gärtner die fünfundvierzig Bauernwürste, die die Frau backt, gegeben.
        Hier, le jardinier lui a donné les quarante-cinq saucisses de ferme que la femme prépare.""",
    "compound; adjectives before and after": """
        Martin's big daughter must give a big singer the old white leather coat.
        Martins große Tochter muss einer großen Sängerin den alten weißen Ledermantel geben.
        La grande fille de Martin doit donner le vieux manteau en cuir blanc à une grande chanteuse.""",
    "its: what is an animal's own": """
        A wild horse ate its good eggs.
        Ein wildes Pferd hat seine guten Eier gegessen.
        Un cheval sauvage a mangé ses bons œufs.""",
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
