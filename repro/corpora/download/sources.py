"""Where public text is: archives, their files, and the corpora made of them. Data, and nothing else.

Paper: section 5.1 trains on "the standard WMT 2014 English-German dataset consisting of about 4.5 million sentence
pairs" and on the English-French one "consisting of 36M sentences"; it names no file. These are the files of the
task's own page, statmt.org/wmt14/translation-task.html.

Every number and hash below was published by others; the comment beside it says where. Each archive has a hash, or all
of its texts have one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from repro.corpora.pair import languages

MB = 1_000_000
TEXT_BYTES_A_PAIR = 361  # both sides, uncompressed: 14,758,986,622 bytes in 40,853,137 en-fr pairs of WMT 2015


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file of an archive, by its exact name, whose ending says how the text is stored: plain, .gz or .sgm."""

    language: str
    name: str
    max_bytes: int  # uncompressed; about three times what is expected
    sha256: str | None = None  # of its text (`parallel_text.text_fingerprint`), if the archive's is unknown


@dataclass(frozen=True, kw_only=True)
class Source:
    """One body of parallel text and the archive that holds it. Several sources may share an archive."""

    name: str
    archive: str  # the file name that we give it
    about: str = ""  # what it is
    urls: tuple[str, ...]  # mirrors, tried in this order
    hosts: tuple[str, ...] = ()  # hosts to which a mirror may redirect
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

    def text_bytes(self, pair: str) -> int:
        """Bytes of the unpacked text, to plan the disk: an estimate, TEXT_BYTES_A_PAIR for each pair.

        It is the mean over the English-French text; that of English-German is a little shorter.
        """
        return self.n_pairs.get(pair, 0) * TEXT_BYTES_A_PAIR


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
        """Bytes of all its unpacked text: an estimate, see `Source.text_bytes`."""
        return sum(one.text_bytes(self.pair) for one in self.sources)

    @property
    def n_train(self) -> int:
        """Pairs of the training text before any is dropped."""
        return sum(source(name).n_pairs[self.pair] for name in self.train)


# SHA-256 of the texts of multi30k/dataset, data/task1, at the commit below. GitHub packs the archive anew for each
# request, so the archive has no fixed hash, but its content has.
CAPTIONS = {
    "multi30k/train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "multi30k/train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "multi30k/train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "multi30k/val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "multi30k/val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "multi30k/val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "multi30k/test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "multi30k/test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "multi30k/test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "multi30k/test_2017_flickr.en": "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    "multi30k/test_2017_flickr.de": "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    "multi30k/test_2017_flickr.fr": "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    "multi30k_tok/train.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "multi30k_tok/train.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
    "multi30k_tok/train.fr": "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
    "multi30k_tok/val.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "multi30k_tok/val.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
    "multi30k_tok/val.fr": "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
    "multi30k_tok/test_2016_flickr.en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
    "multi30k_tok/test_2016_flickr.de": "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
    "multi30k_tok/test_2016_flickr.fr": "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836",
    "multi30k_tok/test_2017_flickr.en": "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f",
    "multi30k_tok/test_2017_flickr.de": "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6",
    "multi30k_tok/test_2017_flickr.fr": "c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4",
}
_CAPTIONS_AT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"


def _sides(names: Mapping[str, str], *, max_bytes: int, known: str = "") -> dict[str, tuple[Member, Member]]:
    """The two files of each pair: the name with the language for {}; in sgm names its role (src, ref) as well.

    `known` is what comes before the language in the keys of CAPTIONS.
    """

    def side(name: str, language: str, role: str) -> Member:
        return Member(
            language=language,
            name=name.format(f"{role}.{language}" if name.endswith(".sgm") else language),
            max_bytes=max_bytes,
            sha256=CAPTIONS.get(f"{known}.{language}"),
        )

    return {
        pair: (side(name, one, "src"), side(name, other, "ref"))
        for pair, name in names.items()
        for one, other in [languages(pair)]
    }


STATMT = ("statmt.org", "www.statmt.org", "data.statmt.org")
# GluonNLP keeps copies of some archives (its scripts/datasets/url_checksums/mirror/wmt.json lists them).
GLUON = "https://gluonnlp-numpy-data.s3-us-west-2.amazonaws.com/datasets/third_party_mirror"


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
    hosts=STATMT,
    size=657_632_379,
    sha256="0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    licence="no copyright known to its authors; cite Koehn 2005 (statmt.org/europarl)",
    members=_sides(
        {"en-de": "training/europarl-v7.de-en.{}", "en-fr": "training/europarl-v7.fr-en.{}"}, max_bytes=1_000 * MB
    ),
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
    hosts=STATMT,
    size=918_311_367,
    sha256="c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    licence="research use (statmt.org/wmt14); text of web pages, under their owners' terms",
    members=_sides({"en-de": "commoncrawl.de-en.{}", "en-fr": "commoncrawl.fr-en.{}"}, max_bytes=1_500 * MB),
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
    hosts=STATMT,
    size=80_418_416,
    sha256="cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    licence="research use (statmt.org/wmt14); text of Project Syndicate",
    members=_sides(
        {"en-de": "training/news-commentary-v9.de-en.{}", "en-fr": "training/news-commentary-v9.fr-en.{}"},
        max_bytes=150 * MB,
    ),
    n_pairs={"en-de": 201_288, "en-fr": 183_251},
)
_GIGA_FREN = Source(
    name="giga_fren",
    archive="training-giga-fren.tar",
    about="10^9 French-English, release 2: web pages of Canadian, European and international institutions",
    urls=_at_statmt("wmt10/training-giga-fren.tar"),
    hosts=STATMT,
    size=2_595_102_720,
    sha256="3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
    licence="research use (statmt.org/wmt14); text of Canadian and international institutions",
    members=_sides({"en-fr": "giga-fren.release2.fixed.{}.gz"}, max_bytes=12_000 * MB),
    n_pairs={"en-fr": 22_520_376},
)
_UN = Source(
    name="un_2000",
    archive="training-parallel-un.tgz",
    about="UN 2000: documents of the United Nations",
    urls=_at_statmt("wmt13/training-parallel-un.tgz"),
    hosts=STATMT,
    size=2_365_634_246,
    sha256="29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
    licence="research use (statmt.org/wmt14); documents of the United Nations",
    members=_sides({"en-fr": "un/undoc.2000.fr-en.{}"}, max_bytes=8_000 * MB),
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
    hosts=STATMT,
    size=38_654_961,
    sha256="7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
    licence="research use (statmt.org/wmt14)",
    members=_sides({"en-de": "dev/newstest2013.{}", "en-fr": "dev/newstest2013.{}"}, max_bytes=4 * MB),
    n_pairs={"en-de": 3_000, "en-fr": 3_000},
)
# Addresses, members and MD5 of both forms of newstest2014: sacreBLEU 2.6.0, `wmt14` and `wmt14/full`.
_NEWSTEST_2014 = Source(
    name="newstest2014",
    archive="wmt14-test-filtered.tgz",
    about="newstest2014 as the task scored it: en-de 2,737 lines (sacreBLEU's wmt14), en-fr 3,003",
    urls=("https://www.statmt.org/wmt14/test-filtered.tgz", "https://statmt.org/wmt14/test-filtered.tgz"),
    hosts=STATMT,
    md5="84c597844c1542e29c2aff23aaee4310",
    licence="research use (statmt.org/wmt14)",
    members=_sides(
        {f"en-{other}": f"test/newstest2014-{other}en-{{}}.sgm" for other in ("de", "fr")},
        max_bytes=4 * MB,
    ),
    n_pairs={"en-de": 2_737, "en-fr": 3_003},
)
_NEWSTEST_2014_FULL = replace(
    _NEWSTEST_2014,
    name="newstest2014_full",
    archive="wmt14-test-full.tgz",
    about="newstest2014 whole: 3,003 lines (sacreBLEU's wmt14/full)",
    urls=("https://www.statmt.org/wmt14/test-full.tgz", "https://statmt.org/wmt14/test-full.tgz"),
    md5="a8cd784e006feb32ac6f3d9ec7eb389a",
    members=_sides(
        {f"en-{other}": f"test-full/newstest2014-{other}en-{{}}.sgm" for other in ("de", "fr")},
        max_bytes=4 * MB,
    ),
    n_pairs={"en-de": 3_003, "en-fr": 3_003},
)


def _captions(corpus: str, split: str, name: str, n_pairs: int) -> Source:
    """One split of Multi30k; `name` is where its files are in data/task1, with {} for the language."""
    place = f"dataset-{_CAPTIONS_AT}/data/task1/{name}"
    pairs = _sides({"en-de": place, "en-fr": place}, max_bytes=8 * MB, known=f"{corpus}/{split}")
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
        members=pairs,
        n_pairs=dict.fromkeys(pairs, n_pairs),
    )


_CAPTION_SPLITS = {"train": 29_000, "val": 1_014, "test_2016_flickr": 1_000, "test_2017_flickr": 1_000}
_CAPTION_SOURCES = [
    one
    for split, n_pairs in _CAPTION_SPLITS.items()
    for one in (
        _captions("multi30k", split, f"raw/{split}.{{}}.gz", n_pairs),
        _captions("multi30k_tok", split, f"tok/{split}.lc.norm.tok.{{}}", n_pairs),
    )
]

SOURCES = {
    one.name: one
    for one in (
        _EUROPARL,
        _COMMON_CRAWL,
        _NEWS_COMMENTARY,
        _GIGA_FREN,
        _UN,
        _NEWSTEST_2013,
        _NEWSTEST_2014,
        _NEWSTEST_2014_FULL,
        *_CAPTION_SOURCES,
    )
}

_WMT14_EN_DE = Collection(
    name="wmt14",
    pair="en-de",
    train=("europarl_v7", "commoncrawl", "news_commentary_v9"),
    dev="newstest2013",
    test="newstest2014_full",
    subset="newstest2014",
    licence="research use (statmt.org/wmt14)",
)
_NEWS_EN_DE = replace(_WMT14_EN_DE, name="news_commentary", train=("news_commentary_v9",))
COLLECTIONS = {
    f"{one.name}-{one.pair}": one
    for one in (
        *(
            Collection(
                name=name,
                pair=pair,
                train=(f"{name}_train",),
                dev=f"{name}_val",
                test=f"{name}_test_2016_flickr",
                further=(f"{name}_test_2017_flickr",),
                licence=SOURCES[f"{name}_train"].licence,
            )
            for name in ("multi30k", "multi30k_tok")
            for pair in ("en-de", "en-fr")
        ),
        _NEWS_EN_DE,
        replace(_NEWS_EN_DE, pair="en-fr", test="newstest2014", subset=None),
        _WMT14_EN_DE,
        replace(
            _WMT14_EN_DE,
            pair="en-fr",
            train=("europarl_v7", "commoncrawl", "un_2000", "news_commentary_v9", "giga_fren"),
            test="newstest2014",
            subset=None,
        ),
    )
}


def source(name: str) -> Source:
    """The source of this name."""
    return SOURCES[name]
