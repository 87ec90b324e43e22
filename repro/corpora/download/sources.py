"""Where public text is: archives, their files, and the corpora made of them. Data, and nothing else.

Paper: section 5.1 trains on "the standard WMT 2014 English-German dataset consisting of about 4.5 million sentence
pairs" and on the English-French one "consisting of 36M sentences"; it names no file. These are the files of the
task's own page, statmt.org/wmt14/translation-task.html.

Every number and hash was published by others; the comment beside it says where. Each archive has a hash, or all of its
texts have one. `known.sha256` lists texts and files, as `sha256sum` prints them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from repro.corpora.pair import languages

MB = 1_000_000
TEXT_BYTES_A_PAIR = 361  # both sides, uncompressed: 14,758,986,622 bytes in 40,853,137 en-fr pairs of WMT 2015
LIST = Path(__file__).with_name("known.sha256")
KNOWN = {place: sha256 for sha256, place in map(str.split, LIST.read_bytes().decode().strip().split("\n"))}


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file of an archive, by its exact name, whose ending says how the text is stored: plain, .gz or .sgm."""

    language: str
    name: str
    sha256: str | None = None  # of its text (`parallel_text.text_fingerprint`), if the archive's is unknown


@dataclass(frozen=True, kw_only=True)
class Source:
    """One body of parallel text and the archive that holds it. Several sources may share an archive."""

    name: str
    archive: str  # the file name that we give it
    about: str = ""  # what it is
    urls: tuple[str, ...]  # mirrors, tried in this order
    size: int | None = None  # bytes of the archive
    max_size: int = 64 * MB  # the most that is received if the size is unknown
    sha256: str | None = None
    md5: str | None = None  # if nothing better is published
    licence: str
    members: Mapping[str, tuple[Member, Member]]  # pair -> its source side, its target side
    n_pairs: Mapping[str, int]  # lines of each side, as published; the pairs without a number are not checked

    @property
    def is_pinned(self) -> bool:
        """Whether a SHA-256 of the archive, or of all its texts, identifies it, wherever it came from."""
        sides = [member for pair in self.members.values() for member in pair]
        return bool(self.sha256) or (bool(sides) and all(side.sha256 for side in sides))

    @property
    def size_at_most(self) -> int:
        """The most bytes to download."""
        return self.max_size if self.size is None else self.size


@dataclass(frozen=True, kw_only=True)
class Collection:
    """One corpus: the sources of its training text in the order in which they are joined, dev and test."""

    name: str
    pair: str  # "en-de": source and target language
    train: tuple[str, ...]  # names of sources
    dev: str
    test: str
    subset: str | None = None  # lines of test that are a test set of their own
    further: tuple[str, ...] = ()  # other test sets
    licence: str

    @property
    def sources(self) -> tuple[Source, ...]:
        """Training text, dev, test, its subset and other test sets."""
        names = (*self.train, self.dev, self.test, self.subset, *self.further)
        return tuple(source(name) for name in names if name)

    @property
    def text_bytes(self) -> int:
        """Bytes of all its unpacked text: an estimate, the mean over the English-French text for each pair."""
        return TEXT_BYTES_A_PAIR * sum(one.n_pairs.get(self.pair, 0) for one in self.sources)

    @property
    def n_train(self) -> int:
        """Pairs of the training text before any is dropped."""
        return sum(source(name).n_pairs[self.pair] for name in self.train)


def _sides(names: Mapping[str, str], known: str = "") -> dict[str, tuple[Member, Member]]:
    """The two files of each pair: the name with the language for {}; in sgm names its role (src, ref) as well.

    `known` is what comes before the language in the list of known texts.
    """

    def side(name: str, language: str, role: str) -> Member:
        place = f"{role}.{language}" if name.endswith(".sgm") else language
        return Member(language=language, name=name.format(place), sha256=KNOWN.get(f"{known}.{language}"))

    return {
        pair: (side(name, one, "src"), side(name, other, "ref"))
        for pair, name in names.items()
        for one, other in [languages(pair)]
    }


# GluonNLP keeps copies of some archives (its scripts/datasets/url_checksums/mirror/wmt.json lists them).
GLUON = "https://gluonnlp-numpy-data.s3-us-west-2.amazonaws.com/datasets/third_party_mirror"
RESEARCH = "research use (statmt.org/wmt14)"


def _at_statmt(path: str, host: str = "www.statmt.org") -> tuple[str, str]:
    """The address of a file at statmt.org, and the same without TLS."""
    return f"https://{host}/{path}", f"http://{host}/{path}"


# Size and SHA-256 of the training archives and of dev.tgz: TensorFlow Datasets, url_checksums/wmt14_translate.txt
# and wmt15_translate.txt. Mirrors without TLS are allowed, as the hashes are known.
# Lines, counted at "\n": en-fr in the WMT'14 parameters of Lingvo (40,842,333 in all), giga-fren by two others as
# well; en-de in a public log of the same three archives (4,520,620 in all). The names of members are those in the
# WMT readers of TensorFlow Datasets and tensor2tensor.
_EUROPARL = Source(
    name="europarl_v7",
    archive="training-parallel-europarl-v7.tgz",
    about="Europarl v7: proceedings of the European Parliament",
    urls=_at_statmt("wmt13/training-parallel-europarl-v7.tgz"),
    size=657_632_379,
    sha256="0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    licence="no copyright known to its authors; cite Koehn 2005 (statmt.org/europarl)",
    members=_sides({"en-de": "training/europarl-v7.de-en.{}", "en-fr": "training/europarl-v7.fr-en.{}"}),
    n_pairs={"en-de": 1_920_209, "en-fr": 2_007_723},
)
_COMMON_CRAWL = Source(
    name="commoncrawl",
    archive="training-parallel-commoncrawl.tgz",
    about="Common Crawl: translations found among web pages, much of it noise",
    urls=(
        *_at_statmt("wmt13/training-parallel-commoncrawl.tgz"),
        f"{GLUON}/training-parallel-commoncrawl-1c0ad85f0ebaf1d543acb009607205f5dae6627d.tgz",
    ),
    size=918_311_367,
    sha256="c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    licence=f"{RESEARCH}; text of web pages, under their owners' terms",
    members=_sides({"en-de": "commoncrawl.de-en.{}", "en-fr": "commoncrawl.fr-en.{}"}),
    n_pairs={"en-de": 2_399_123, "en-fr": 3_244_152},
)
_NEWS_COMMENTARY = Source(
    name="news_commentary_v9",
    archive="training-parallel-nc-v9.tgz",
    about="News Commentary v9: opinion pieces, the training text that is nearest to the test set",
    urls=(
        *_at_statmt("wmt14/training-parallel-nc-v9.tgz"),
        f"{GLUON}/training-parallel-nc-v9-c7ae7f50cd45c2f3014d78ddba25a4a8a851e27a.tgz",
    ),
    size=80_418_416,
    sha256="cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    licence=f"{RESEARCH}; text of Project Syndicate",
    members=_sides({"en-de": "training/news-commentary-v9.de-en.{}", "en-fr": "training/news-commentary-v9.fr-en.{}"}),
    n_pairs={"en-de": 201_288, "en-fr": 183_251},
)
_GIGA_FREN = Source(
    name="giga_fren",
    archive="training-giga-fren.tar",
    about="10^9 French-English, release 2: web pages of Canadian, European and international institutions",
    urls=_at_statmt("wmt10/training-giga-fren.tar"),
    size=2_595_102_720,
    sha256="3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
    licence=f"{RESEARCH}; text of Canadian and international institutions",
    members=_sides({"en-fr": "giga-fren.release2.fixed.{}.gz"}),
    n_pairs={"en-fr": 22_520_376},
)
_UN = Source(
    name="un_2000",
    archive="training-parallel-un.tgz",
    about="UN 2000: documents of the United Nations",
    urls=_at_statmt("wmt13/training-parallel-un.tgz"),
    size=2_365_634_246,
    sha256="29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
    licence=f"{RESEARCH}; documents of the United Nations",
    members=_sides({"en-fr": "un/undoc.2000.fr-en.{}"}),
    n_pairs={"en-fr": 12_886_831},
)
# WMT 2019's collection of development sets, because its hash is published; newstest2013 is the same in all of them.
_NEWSTEST_2013 = Source(
    name="newstest2013",
    archive="wmt19-dev.tgz",
    about="development sets of WMT 2019, of which newstest2013 is read",
    urls=(
        *_at_statmt("wmt19/translation-task/dev.tgz", host="data.statmt.org"),
        f"{GLUON}/dev-451ce2cae815c8392212ccb3f54f5dcddb9b2b9e.tgz",
    ),
    size=38_654_961,
    sha256="7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
    licence=RESEARCH,
    members=_sides({"en-de": "dev/newstest2013.{}", "en-fr": "dev/newstest2013.{}"}),
    n_pairs={"en-de": 3_000, "en-fr": 3_000},
)


def _newstest_2014(kind: str, about: str, md5: str, n_pairs: Mapping[str, int]) -> Source:
    """A form of newstest2014. Addresses, members and MD5: sacreBLEU 2.6.0, `wmt14` and `wmt14/full`."""
    inside = "test" if kind == "filtered" else f"test-{kind}"
    return Source(
        name="newstest2014" if kind == "filtered" else f"newstest2014_{kind}",
        archive=f"wmt14-test-{kind}.tgz",
        about=about,
        urls=tuple(f"https://{host}statmt.org/wmt14/test-{kind}.tgz" for host in ("www.", "")),
        md5=md5,
        licence=RESEARCH,
        members=_sides({f"en-{other}": f"{inside}/newstest2014-{other}en-{{}}.sgm" for other in ("de", "fr")}),
        n_pairs=n_pairs,
    )


_NEWSTEST_2014 = _newstest_2014(
    "filtered",
    "newstest2014 as the task scored it: en-de 2,737 lines (sacreBLEU's wmt14), en-fr 3,003",
    "84c597844c1542e29c2aff23aaee4310",
    {"en-de": 2_737, "en-fr": 3_003},
)
_NEWSTEST_2014_FULL = _newstest_2014(
    "full",
    "newstest2014 whole: 3,003 lines (sacreBLEU's wmt14/full)",
    "a8cd784e006feb32ac6f3d9ec7eb389a",
    {"en-de": 3_003, "en-fr": 3_003},
)

_CAPTIONS_AT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"  # a commit of multi30k/dataset


def _captions(corpus: str, split: str, n_pairs: int) -> Source:
    """One split of Multi30k. GitHub packs the archive anew for each request, so only its texts have a fixed hash."""
    name = f"raw/{split}.{{}}.gz" if corpus == "multi30k" else f"tok/{split}.lc.norm.tok.{{}}"
    place = f"dataset-{_CAPTIONS_AT}/data/task1/{name}"
    return Source(
        name=f"{corpus}_{split}",
        archive=f"multi30k-{_CAPTIONS_AT[:7]}.tar.gz",
        about="Multi30k: captions of pictures in English, German and French, as they are and as lower-cased tokens",
        urls=(
            f"https://codeload.github.com/multi30k/dataset/tar.gz/{_CAPTIONS_AT}",
            f"https://github.com/multi30k/dataset/archive/{_CAPTIONS_AT}.tar.gz",
        ),
        max_size=256 * MB,
        licence="non-commercial research and education; cite Elliott et al. 2016, 2017",
        members=_sides({"en-de": place, "en-fr": place}, known=f"{corpus}/{split}"),
        n_pairs={"en-de": n_pairs, "en-fr": n_pairs},
    )


_CAPTION_CORPORA = ("multi30k", "multi30k_tok")
_CAPTION_SPLITS = {"train": 29_000, "val": 1_014, "test_2016_flickr": 1_000, "test_2017_flickr": 1_000}
_WMT = (_EUROPARL, _COMMON_CRAWL, _NEWS_COMMENTARY, _GIGA_FREN, _UN)
_NEWSTESTS = (_NEWSTEST_2013, _NEWSTEST_2014, _NEWSTEST_2014_FULL)
_CAPTION_SOURCES = [_captions(corpus, *split) for split in _CAPTION_SPLITS.items() for corpus in _CAPTION_CORPORA]
SOURCES = {one.name: one for one in (*_WMT, *_NEWSTESTS, *_CAPTION_SOURCES)}

_WMT14_EN_DE = Collection(
    name="wmt14",
    pair="en-de",
    train=("europarl_v7", "commoncrawl", "news_commentary_v9"),
    dev="newstest2013",
    test="newstest2014_full",
    subset="newstest2014",
    licence=RESEARCH,
)
_WMT14_EN_FR = replace(
    _WMT14_EN_DE,
    pair="en-fr",
    train=("europarl_v7", "commoncrawl", "un_2000", "news_commentary_v9", "giga_fren"),
    test="newstest2014",
    subset=None,
)
_CAPTION_COLLECTIONS = [
    Collection(
        name=name,
        pair=pair,
        train=(f"{name}_train",),
        dev=f"{name}_val",
        test=f"{name}_test_2016_flickr",
        further=(f"{name}_test_2017_flickr",),
        licence=SOURCES[f"{name}_train"].licence,
    )
    for name in _CAPTION_CORPORA
    for pair in ("en-de", "en-fr")
]
_NEWS_COLLECTIONS = [
    replace(one, name="news_commentary", train=("news_commentary_v9",)) for one in (_WMT14_EN_DE, _WMT14_EN_FR)
]
COLLECTIONS = {
    f"{one.name}-{one.pair}": one for one in (*_CAPTION_COLLECTIONS, *_NEWS_COLLECTIONS, _WMT14_EN_DE, _WMT14_EN_FR)
}


def source(name: str) -> Source:
    """The source of this name."""
    return SOURCES[name]
