"""Languages that are written without blanks between words, whose words nobody counts by blanks."""

import re

# Tags of ISO 639 and what people write for them, by the tokeniser with which sacreBLEU counts them: its `zh` cuts
# Chinese characters apart, its `char` all of them. `ja-mecab` would need a dictionary that few have installed.
CHINESE = ["zh", "zho", "chi", "cmn", "yue", "wuu", "lzh", "cn"]
OTHERS = ["ja", "jpn", "jp", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "shn", "bo", "bod", "dz", "dzo"]
TOKENISERS = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(OTHERS, "char")


def tokeniser_of(language: str) -> str | None:
    """By which sacreBLEU counts it: of zh, zh-Hans, zh_CN, ZH and zho_Hans alike; None of languages with blanks."""
    return TOKENISERS.get(re.split("[-_]", language.casefold())[0])
