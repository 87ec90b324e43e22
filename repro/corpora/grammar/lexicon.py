"""The words of the corpus `grammar` and their forms in English, German and French.

Plain tables, one line per lemma, the most frequent first in each group. Inflection and word order are in
`english`, `german` and `french`. One English lemma has one German and one French lemma, so that only the
sentence, never chance, decides how a word is rendered.

Underscores stand for spaces inside an entry; regular forms are not written down, they are computed below.
"""

from dataclasses import dataclass
from functools import cache

VOWELS = tuple("aeiouyhàâéèêëîïôûœAEIOUHÉÈÊ")  # French h is mute here: the lexicon holds no aspirated h


@dataclass(frozen=True)
class Noun:
    """A noun of one class (what may eat, be eaten, be worn ...) with gender and plural in three languages."""

    # h human, a animal, o object, d what opens, m furniture, f food, c clothing, r text, v vehicle,
    # p place, e event
    kind: str
    pronoun: str  # he, she or it
    en: str
    en_plural: str
    de: str
    de_plural: str
    de_gender: str  # m, f, n
    weak: bool  # n-declension: der Junge, den Jungen
    fr: str
    fr_plural: str
    fr_gender: str  # m, f
    at: tuple[str, ...] = ()  # places only: prepositions of English, German (where), German (where to), French

    def german(self, case: str, plural: bool) -> str:
        """The form in one case: N, A, D or G."""
        if plural:
            return self.de_plural + ("n" if case == "D" and not self.de_plural.endswith(("n", "s")) else "")
        if self.weak:
            return self.de if case == "N" else self.de_plural
        if case != "G" or self.de_gender == "f":
            return self.de
        return self.de + ("es" if self.de.endswith(("s", "ß", "z", "sch")) or _one_syllable(self.de) else "s")


@dataclass(frozen=True)
class Modifier:
    """The first noun of a compound: kitchen table, Küchentisch, table de cuisine."""

    kinds: str  # classes of the heads it goes with
    en: str
    de: str
    fr: str


@dataclass(frozen=True)
class Adjective:
    """An adjective, the classes of nouns it describes, and its comparative where it has one."""

    kinds: str
    en: str
    en_more: str  # older, more beautiful
    de: str
    de_stem: str  # hoch, but hoh-e
    de_more: str  # älter
    fr: str
    fr_feminine: str
    fr_liaison: str  # before a vowel, masculine: vieil
    before: bool  # BANGS: stands before the noun in French

    def french(self, gender: str, plural: bool, following: str = "") -> str:
        """The form for a gender and number, before a following word if that matters: vieil homme."""
        if plural:
            return self.fr_feminine + "s" if gender == "f" else french_plural(self.fr)
        if gender == "f":
            return self.fr_feminine
        return self.fr_liaison if following.startswith(VOWELS) else self.fr


@dataclass(frozen=True)
class Verb:
    """A verb with its frame: `roles` are the classes that each argument may have, subject first."""

    roles: tuple[str, ...]
    en: str
    en_past: str
    en_participle: str
    en_particle: str  # turn *off*
    en_prep: str  # wait *for*
    de: str  # without its prefix: kommen
    de_prefix: str  # an
    de_present: str  # third person singular
    de_participle: str
    de_sein: bool
    de_prep: str
    de_case: str  # of the object, or of the noun after de_prep
    de_reflexive: bool  # sich erinnern
    fr: str
    fr_etre: bool
    fr_reflexive: bool
    fr_prep: str


@dataclass(frozen=True)
class Prep:
    """A preposition and the case it takes in German."""

    en: str
    de: str
    case: str
    fr: str


NOUNS = """
h he   man/men Mann/Männer:m homme:m
h she  woman/women Frau/Frauen:f femme:f
h it   child/children Kind/Kinder:n enfant:m
h he   boy Junge/Jungen:w garçon:m
h she  mother Mutter/Mütter:f mère:f
h he   father Vater/Väter:m père:m
h he   teacher Lehrer/Lehrer:m professeur:m
h she  friend Freundin/Freundinnen:f amie:f
h he   student Student/Studenten:w étudiant:m
h she  sister Schwester/Schwestern:f sœur:f
h he   brother Bruder/Brüder:m frère:m
h she  doctor Ärztin/Ärztinnen:f médecin:m
h she  neighbour Nachbarin/Nachbarinnen:f voisine:f
h he   farmer Bauer/Bauern:w paysan:m
h she  daughter Tochter/Töchter:f fille:f
h he   son Sohn/Söhne:m fils:m
h he   policeman/policemen Polizist/Polizisten:w policier:m
h she  singer Sängerin/Sängerinnen:f chanteuse:f
h he   guest Gast/Gäste:m invité:m
h she  queen Königin/Königinnen:f reine:f
h he   baker Bäcker/Bäcker:m boulanger:m
h she  aunt Tante/Tanten:f tante:f
h he   uncle Onkel/Onkel:m oncle:m
h he   gardener Gärtner/Gärtner:m jardinier:m
h she  painter Malerin/Malerinnen:f peintre:f
h he   judge Richter/Richter:m juge:m
h she  author Autorin/Autorinnen:f autrice:f
h he   soldier Soldat/Soldaten:w soldat:m
a it   dog Hund/Hunde:m chien:m
a it   cat Katze/Katzen:f chat:m
a it   horse Pferd/Pferde:n cheval:m
a it   bird Vogel/Vögel:m oiseau:m
a it   cow Kuh/Kühe:f vache:f
a it   rabbit Kaninchen/Kaninchen:n lapin:m
a it   mouse/mice Maus/Mäuse:f souris:f
a it   bear Bär/Bären:w ours:m
a it   fox Fuchs/Füchse:m renard:m
a it   goat Ziege/Ziegen:f chèvre:f
o it   key Schlüssel/Schlüssel:m clé:f
o it   bag Tasche/Taschen:f sac:m
o it   picture Bild/Bilder:n tableau:m
o it   bottle Flasche/Flaschen:f bouteille:f
o it   knife/knives Messer/Messer:n couteau:m
o it   clock Uhr/Uhren:f horloge:f
o it   cup Tasse/Tassen:f tasse:f
o it   umbrella Regenschirm/Regenschirme:m parapluie:m
o it   ball Ball/Bälle:m ballon:m
d it   box Schachtel/Schachteln:f boîte:f
o it   flower Blume/Blumen:f fleur:f
o it   plate Teller/Teller:m assiette:f
o it   phone Telefon/Telefone:n téléphone:m
d it   suitcase Koffer/Koffer:m valise:f
o it   mirror Spiegel/Spiegel:m miroir:m
o it   ring Ring/Ringe:m bague:f
o it   lamp Lampe/Lampen:f lampe:f
o it   guitar Gitarre/Gitarren:f guitare:f
m it   table Tisch/Tische:m table:f
m it   chair Stuhl/Stühle:m chaise:f
m it   bed Bett/Betten:n lit:m
d it   door Tür/Türen:f porte:f
d it   window Fenster/Fenster:n fenêtre:f
d it   cupboard Schrank/Schränke:m armoire:f
m it   shelf/shelves Regal/Regale:n étagère:f
m it   sofa Sofa/Sofas:n canapé:m
f it   apple Apfel/Äpfel:m pomme:f
f it   cake Kuchen/Kuchen:m gâteau:m
f it   egg Ei/Eier:n œuf:m
f it   bread Brot/Brote:n pain:m
f it   soup Suppe/Suppen:f soupe:f
f it   sausage Wurst/Würste:f saucisse:f
f it   potato/potatoes Kartoffel/Kartoffeln:f pomme_de_terre/pommes_de_terre:f
f it   cheese Käse/Käse:m fromage:m
f it   pear Birne/Birnen:f poire:f
f it   onion Zwiebel/Zwiebeln:f oignon:m
f it   sandwich Brötchen/Brötchen:n sandwich:m
c it   coat Mantel/Mäntel:m manteau:m
c it   shirt Hemd/Hemden:n chemise:f
c it   hat Hut/Hüte:m chapeau:m
c it   dress Kleid/Kleider:n robe:f
c it   shoe Schuh/Schuhe:m chaussure:f
c it   jacket Jacke/Jacken:f veste:f
c it   skirt Rock/Röcke:m jupe:f
c it   scarf/scarves Schal/Schals:m écharpe:f
r it   book Buch/Bücher:n livre:m
r it   letter Brief/Briefe:m lettre:f
r it   newspaper Zeitung/Zeitungen:f journal:m
r it   story Geschichte/Geschichten:f histoire:f
r it   poem Gedicht/Gedichte:n poème:m
r it   song Lied/Lieder:n chanson:f
r it   report Bericht/Berichte:m rapport:m
v it   car Auto/Autos:n voiture:f
v it   train Zug/Züge:m train:m
v it   bus Bus/Busse:m bus:m
v it   bicycle Fahrrad/Fahrräder:n vélo:m
v it   ship Schiff/Schiffe:n bateau:m
v it   plane Flugzeug/Flugzeuge:n avion:m
v it   lorry Lastwagen/Lastwagen:m camion:m
p it   house Haus/Häuser:n maison:f in/in/in/dans
p it   garden Garten/Gärten:m jardin:m in/in/in/dans
p it   school Schule/Schulen:f école:f at/in/in/à
p it   kitchen Küche/Küchen:f cuisine:f in/in/in/dans
p it   city Stadt/Städte:f ville:f in/in/in/dans
p it   station Bahnhof/Bahnhöfe:m gare:f at/an/zu/à
p it   village Dorf/Dörfer:n village:m in/in/in/dans
p it   street Straße/Straßen:f rue:f in/auf/auf/dans
p it   church Kirche/Kirchen:f église:f in/in/in/dans
p it   market Markt/Märkte:m marché:m at/auf/auf/à
p it   office Büro/Büros:n bureau:m in/in/in/dans
p it   forest Wald/Wälder:m forêt:f in/in/in/dans
p it   bridge Brücke/Brücken:f pont:m on/auf/auf/sur
p it   museum Museum/Museen:n musée:m in/in/in/dans
p it   hotel Hotel/Hotels:n hôtel:m in/in/in/dans
p it   beach Strand/Strände:m plage:f on/an/an/sur
p it   hospital Krankenhaus/Krankenhäuser:n hôpital:m in/in/in/à
p it   restaurant Restaurant/Restaurants:n restaurant:m in/in/in/dans
p it   island Insel/Inseln:f île:f on/auf/auf/sur
p it   room Zimmer/Zimmer:n chambre:f in/in/in/dans
p it   airport Flughafen/Flughäfen:m aéroport:m at/an/zu/à
p it   roof Dach/Dächer:n toit:m on/auf/auf/sur
p it   cellar Keller/Keller:m cave:f in/in/in/dans
e it   meal Essen/Essen:n repas:m
e it   concert Konzert/Konzerte:n concert:m
e it   party Feier/Feiern:f fête:f
e it   storm Sturm/Stürme:m tempête:f
e it   war Krieg/Kriege:m guerre:f
e it   lesson Stunde/Stunden:f leçon:f
e it   journey Reise/Reisen:f voyage:m
e it   wedding Hochzeit/Hochzeiten:f mariage:m
e it   game Spiel/Spiele:n match:m
"""

MODIFIERS = """
md    kitchen Küchen de_cuisine
omd   glass Glas en_verre
mpd   wooden Holz en_bois
md    garden Garten de_jardin
mpd   stone Stein en_pierre
p    village Dorf de_village
oc   leather Leder en_cuir
c    winter Winter d'hiver
o    gold Gold en_or
or   school Schul d'école
c    summer Sommer d'été
omd   hotel Hotel d'hôtel
or   paper Papier en_papier
or   travel Reise de_voyage
o    silver Silber en_argent
f    farm Bauern de_ferme
ov   plastic Plastik en_plastique
cr   children's Kinder d'enfant
"""

ADJECTIVES = """
haomcvpd  old alt älter <vieux/vieille/vieil
haomcvped big:bigger groß größer <grand
haomfcvpd small klein kleiner <petit
omcrvpfed good:better gut besser <bon/bonne
omcrvped  new neu neuer <nouveau/nouvelle/nouvel
ha       young jung jünger <jeune
haocpev  beautiful schön schöner <beau/belle/bel
omcavd    red rot - rouge
ha       tired müde müder fatigué
ocmvd     expensive teuer/teur teurer cher/chère
omcad     black schwarz - noir
h        happy glücklich glücklicher heureux/heureuse
omcad     white weiß - blanc/blanche
omcred    long lang länger <long/longue
ha       sick krank kränker malade
omcvd     green grün - vert
h        rich reich reicher riche
omvd      heavy schwer schwerer lourd
ocmvd     broken kaputt - cassé
ha       hungry hungrig hungriger affamé
h        friendly freundlich freundlicher aimable
omcvd     blue blau - bleu
pv       empty leer leerer vide
h        poor arm ärmer pauvre
ha       strong stark stärker fort
omcpd     dirty schmutzig schmutziger sale
re       interesting interessant interessanter intéressant
re       boring langweilig langweiliger ennuyeux/ennuyeuse
h        famous berühmt berühmter célèbre
f        fresh frisch frischer frais/fraîche
pv       quiet ruhig ruhiger tranquille
r        short kurz kürzer court
ha       clever klug klüger intelligent
omd       round rund - rond
h        polite höflich höflicher poli
p        dark dunkel/dunkl dunkler sombre
ocmd      brown braun - brun
h        serious ernst ernster sérieux/sérieuse
f        cold kalt kälter froid
re       sad:sadder traurig trauriger triste
oc       wet:wetter nass nasser mouillé
h        lazy faul fauler paresseux/paresseuse
f        hot:hotter heiß heißer chaud
a        wild wild wilder sauvage
r        funny lustig lustiger drôle
ha       brave mutig mutiger courageux/courageuse
vcp      modern modern moderner moderne
e        important wichtig wichtiger important
h        proud stolz stolzer fier/fière
ope      strange seltsam seltsamer étrange
"""

# subject > object, giver > receiver > thing; @ a place gone to, = a place where something is put
VERBS = """
h>ofcmrvadhp see/saw/seen sehen:sieht:gesehen voir
h>ofcrv     buy/bought/bought kaufen:kauft:gekauft acheter
ha          sleep/slept schlafen:schläft:geschlafen dormir
ha>f        eat/ate/eaten essen:isst:gegessen manger
h>h>ofcr    give/gave/given geben:gibt:gegeben donner
h>r         read/read lesen:liest:gelesen lire
h>@         go/went/gone gehen:geht:*gegangen *aller
h>odcrva    look:for suchen:sucht:gesucht chercher
h>h         help helfen:hilft:geholfen+D aider
h           work arbeiten:arbeitet:gearbeitet travailler
h>ocrva     find/found finden:findet:gefunden trouver
h>hv        wait:for warten:wartet:gewartet+auf.A attendre
h>h         call an|rufen:ruft:angerufen appeler
hv          arrive an|kommen:kommt:*angekommen *arriver
h>h>ocrfa   show/showed/shown zeigen:zeigt:gezeigt montrer
h>d         open öffnen:öffnet:geöffnet ouvrir
h>hr        talk:about sprechen:spricht:gesprochen+über.A parler+de
h>@         run/ran/run laufen:läuft:*gelaufen courir
h>hacrpv    love lieben:liebt:geliebt aimer
h>h         invite ein|laden:lädt:eingeladen inviter
h>o>=       put/put legen:legt:gelegt mettre
h           laugh lachen:lacht:gelacht rire
h>r         write/wrote/written schreiben:schreibt:geschrieben écrire
h>d         close zu|machen:macht:zugemacht fermer
h>ocrf      bring/brought mit|bringen:bringt:mitgebracht apporter
ha>ha       follow folgen:folgt:*gefolgt+D suivre
h>h         thank danken:dankt:gedankt+D remercier
h>ocra      lose/lost verlieren:verliert:verloren perdre
h>oc        carry tragen:trägt:getragen porter
h>vmdo      repair reparieren:repariert:repariert réparer
h           sing/sang/sung singen:singt:gesungen chanter
h>hpe       think/thought:of denken:denkt:gedacht+an.A penser+à
h>h>or      send/sent schicken:schickt:geschickt envoyer
h           get/got/got~up auf|stehen:steht:*aufgestanden se_lever
h>f         cook kochen:kocht:gekocht cuisiner
h>h         listen:to zu|hören:hört:zugehört+D écouter
h>oaehr     look:at an|sehen:sieht:angesehen regarder
h>ha        meet/met treffen:trifft:getroffen rencontrer
ha          cry weinen:weint:geweint pleurer
h>dcmv      clean putzen:putzt:geputzt nettoyer
h>hap       dream:of träumen:träumt:geträumt+von.D rêver+de
h           come/came/come~back zurück|kommen:kommt:*zurückgekommen *revenir
h>ofcva     sell/sold verkaufen:verkauft:verkauft vendre
h>c         put/put~on an|ziehen:zieht:angezogen enfiler
h>h         answer antworten:antwortet:geantwortet+D répondre+à
h>ocr       forget/forgot/forgotten vergessen:vergisst:vergessen oublier
h           dance tanzen:tanzt:getanzt danser
h>h>rof     bring/brought~back zurück|bringen:bringt:zurückgebracht rapporter
h>pe        visit besuchen:besucht:besucht visiter
ha          fall/fell/fallen~asleep ein|schlafen:schläft:*eingeschlafen s'_endormir
h>ocr       throw/threw/thrown~away weg|werfen:wirft:weggeworfen jeter
h>h>r       tell/told erzählen:erzählt:erzählt raconter
h>o         break/broke/broken zerbrechen:zerbricht:zerbrochen casser
h>ofcr      steal/stole/stolen stehlen:stiehlt:gestohlen voler
h>fe        prepare vor|bereiten:bereitet:vorbereitet préparer
oaf         disappear verschwinden:verschwindet:*verschwunden disparaître
h>ha        look:after auf|passen:passt:aufgepasst+auf.A s'_occuper+de
h>@         travel/travelled reisen:reist:*gereist voyager
h>h>ocr     lend/lent leihen:leiht:geliehen prêter
ha>ha       hear/heard hören:hört:gehört entendre
h>ocr       hide/hid/hidden verstecken:versteckt:versteckt cacher
h>ocr       pick~up auf|heben:hebt:aufgehoben ramasser
ha>ao       play:with spielen:spielt:gespielt+mit.D jouer+avec
hv          stop/stopped an|halten:hält:angehalten s'_arrêter
ocrv>h      belong:to gehören:gehört:gehört+D appartenir+à
h>cv        wash waschen:wäscht:gewaschen laver
h>f         cut/cut schneiden:schneidet:geschnitten couper
h>ocf       choose/chose/chosen aus|wählen:wählt:ausgewählt choisir
h           wake/woke/woken~up auf|wachen:wacht:*aufgewacht se_réveiller
h>hpe       remember sich_erinnern:erinnert:erinnert+an.A se_souvenir+de
h>c         take/took/taken~off aus|ziehen:zieht:ausgezogen enlever
h>hamd      draw/drew/drawn zeichnen:zeichnet:gezeichnet dessiner
h>ov        use benutzen:benutzt:benutzt utiliser
h>oc        pack ein|packen:packt:eingepackt emballer
h>h         forgive/forgave/forgiven verzeihen:verzeiht:verziehen+D pardonner+à
h>h         laugh:at aus|lachen:lacht:ausgelacht se_moquer+de
h>@         return zurück|kehren:kehrt:*zurückgekehrt *retourner
h>orv       borrow aus|leihen:leiht:ausgeliehen emprunter
h>f         bake backen:backt:gebacken préparer
a>ha        bite/bit/bitten beißen:beißt:gebissen mordre
h>h>ocf     offer an|bieten:bietet:angeboten offrir
h           swim/swam/swum schwimmen:schwimmt:*geschwommen nager
ha>h        obey gehorchen:gehorcht:gehorcht+D obéir+à
h           smile lächeln:lächelt:gelächelt sourire
h>o>=       throw/threw/thrown werfen:wirft:geworfen lancer
h>dmv       paint malen:malt:gemalt peindre
h           stay bleiben:bleibt:*geblieben *rester
h>rf        order bestellen:bestellt:bestellt commander
v           leave/left ab|fahren:fährt:*abgefahren *partir
"""

CLAUSE_VERBS = """
that say/said sagen:sagt:gesagt dire
that know/knew/known wissen:weiß:gewusst savoir
that believe glauben:glaubt:geglaubt croire
that hope hoffen:hofft:gehofft espérer
that explain erklären:erklärt:erklärt expliquer
that write/wrote/written schreiben:schreibt:geschrieben écrire
whether ask fragen:fragt:gefragt demander
whether know/knew/known wissen:weiß:gewusst savoir
to try versuchen:versucht:versucht essayer+de
to forget/forgot/forgotten vergessen:vergisst:vergessen oublier+de
to decide beschließen:beschließt:beschlossen décider+de
to begin/began/begun an|fangen:fängt:angefangen commencer+à
to promise versprechen:verspricht:versprochen promettre+de
to hope hoffen:hofft:gehofft espérer
"""

NAMES = (
    "Anna she,Paul he,Maria she,Peter he,Laura she,Daniel he,Emma she,Simon he,Julia she,Martin he,"
    "Sophie she,Oskar he,Eva she,David he,Clara she,Robert he"
)

TOWNS = """
in/Berlin in/nach/Berlin à_Berlin
in/Paris in/nach/Paris à_Paris
in/Vienna in/nach/Wien à_Vienne
in/France in/nach/Frankreich en_France
in/London in/nach/London à_Londres
in/Germany in/nach/Deutschland en_Allemagne
in/Switzerland in/in/der_Schweiz en_Suisse
in/Italy in/nach/Italien en_Italie
in/Cologne in/nach/Köln à_Cologne
"""


def _one_syllable(word: str) -> bool:
    """Does the word have one group of vowels? (Mann, Hund, Freund; not Lehrer)"""
    vowels = "".join("v" if letter in "aeiouyäöü" else " " for letter in word.lower())
    return len(vowels.split()) == 1


def _forms(entry: str, n: int) -> list[str]:
    """Split `a/b/c` into n forms; a missing one repeats the last."""
    forms = entry.replace("_", " ").split("/")
    return forms + [forms[-1]] * (n - len(forms))


def english_plural(word: str) -> str:
    """ladies, boxes, dogs"""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "sh", "ch")) else "s")


def english_past(word: str) -> str:
    """carried, loved, opened (verbs that double a letter, like stop, are in the lexicon)"""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


def english_more(word: str) -> str:
    """older, nicer, happier, more beautiful"""
    if word.endswith("y"):
        return word[:-1] + "ier"
    if not _one_syllable(word[:-1] if word.endswith("e") else word):
        return "more " + word
    return word + ("r" if word.endswith("e") else "er")


def french_plural(word: str) -> str:
    """bras, chevaux, bateaux, chiens"""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith("eau") else "s")


def _noun(line: str) -> Noun:
    kind, pronoun, en, de, fr, *at = line.split()
    (de, de_gender), (fr, fr_gender) = de.split(":"), fr.split(":")
    en_forms, de_forms, fr_forms = _forms(en, 1), _forms(de, 2), _forms(fr, 1)
    return Noun(
        kind, pronoun,
        en_forms[0], en_forms[1] if len(en_forms) > 1 else english_plural(en_forms[0]),
        de_forms[0], de_forms[1], "m" if de_gender == "w" else de_gender, de_gender == "w",
        fr_forms[0], fr_forms[1] if len(fr_forms) > 1 else french_plural(fr_forms[0]), fr_gender,
        tuple(at[0].split("/")) if at else (),
    )  # fmt: skip


def _adjective(line: str) -> Adjective:
    kinds, en, de, de_more, fr = line.split()
    en, _, en_more = en.partition(":")
    de_forms, fr_forms = _forms(de, 2), _forms(fr.removeprefix("<"), 1)
    feminine = fr_forms[1] if len(fr_forms) > 1 else fr_forms[0] + ("" if fr_forms[0].endswith("e") else "e")
    liaison = fr_forms[2] if len(fr_forms) > 2 else fr_forms[0]
    more = "" if de_more == "-" else en_more or english_more(en)
    before = fr.startswith("<")
    de, stem = de_forms[0], de_forms[1].removesuffix("e")  # müde: müd-er
    return Adjective(kinds, en, more, de, stem, de_more, fr_forms[0], feminine, liaison, before)


def _verb(line: str) -> Verb:
    roles, en, de, fr = line.split()
    en, _, prep = en.partition(":")
    en, _, particle = en.partition("~")
    parts = en.split("/")
    past = parts[1] if len(parts) > 1 else english_past(parts[0])
    de, _, frame = de.partition("+")
    infinitive, present, participle = de.split(":")
    prefix, _, stem = infinitive.rpartition("|")
    de_prep, _, case = frame.rpartition(".")
    fr, _, fr_prep = fr.partition("+")
    reflexive = fr.startswith(("se_", "s'_"))
    return Verb(
        tuple(roles.split(">")),
        parts[0], past, parts[2] if len(parts) > 2 else past, particle, prep,
        stem.removeprefix("sich_"), prefix, present,
        participle.lstrip("*"), participle.startswith("*"), de_prep,
        case or "A", stem.startswith("sich_"),
        fr.lstrip("*").removeprefix("se_").removeprefix("s'_"), fr.startswith("*") or reflexive, reflexive,
        fr_prep,
    )  # fmt: skip


def _rows(table: str) -> list[str]:
    return [line for line in table.split("\n") if line.strip()]


def _town(entry: str) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """A town or country, where (in Berlin) and where to (nach Berlin), in three languages."""
    en, de, fr = entry.split()
    (prep, town), (at, to, de_town) = en.split("/"), de.replace("_", " ").split("/")
    fr = fr.replace("_", " ")
    return (f"{prep} {town}", f"{at} {de_town}", fr), (f"to {town}", f"{to} {de_town.replace('der ', 'die ')}", fr)


nouns = [_noun(line) for line in _rows(NOUNS)]
modifiers = [Modifier(*(field.replace("_", " ") for field in line.split())) for line in _rows(MODIFIERS)]
adjectives = [_adjective(line) for line in _rows(ADJECTIVES)]
verbs = [_verb(line) for line in _rows(VERBS)]
clause_verbs = [(kind, _verb("h " + rest)) for kind, rest in (row.split(" ", 1) for row in _rows(CLAUSE_VERBS))]
names = [(entry.split()[0], entry.split()[1]) for entry in NAMES.split(",")]
towns = [_town(entry) for entry in _rows(TOWNS)]


@cache
def of_kind(kind: str) -> list[Noun]:
    """The nouns of one class."""
    return [noun for noun in nouns if noun.kind == kind]


@cache
def with_subject(kind: str) -> list[Verb]:
    """The verbs that a noun of this class may be the subject of."""
    return [verb for verb in verbs if kind in verb.roles[0]]


@cache
def with_object(kind: str) -> list[Verb]:
    """The verbs of two roles that a noun of this class may be the object of."""
    return [verb for verb in verbs if len(verb.roles) == 2 and kind in verb.roles[1]]


@cache
def passive() -> list[Verb]:
    """Verbs whose object is a plain accusative thing in every language: what the passive is made of."""
    return [
        verb
        for verb in verbs
        if len(verb.roles) == 2 and set(verb.roles[1]) & set("fcrdmv")
        and verb.de_case == "A" and not (verb.de_prep or verb.fr_prep or verb.en_prep or verb.fr_reflexive)
    ]  # fmt: skip


@cache
def describing(kind: str, before: bool | None = None) -> list[Adjective]:
    """The adjectives for a class of nouns: all, or those on one side of the French noun."""
    return [a for a in adjectives if kind in a.kinds and before in (None, a.before)]


@cache
def compounding(kind: str) -> list[Modifier]:
    """The first halves of compounds that go with a class of nouns."""
    return [modifier for modifier in modifiers if kind in modifier.kinds]
