"""Languages written without blanks between words, which need a tokeniser of their own for scoring."""

import re

# ISO 639 tags and common spellings of them, grouped by sacreBLEU tokeniser: `zh` separates Chinese characters, `char`
# separates all characters. `ja-mecab` would need a dictionary that few have installed.
CHINESE = ["zh", "zho", "chi", "cmn", "yue", "wuu", "lzh", "cn"]
OTHERS = ["ja", "jpn", "jp", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "shn", "bo", "bod", "dz", "dzo"]
TOKENISERS = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(OTHERS, "char")


def tokeniser_of(language: str) -> str | None:
    """sacreBLEU's tokeniser for a language (zh, zh-Hans, zh_CN, ZH, zho_Hans are one); None if it writes blanks."""
    return TOKENISERS.get(re.split("[-_]", language.casefold())[0])
