"""Defects of text in many shards, and the tests that must notice them."""

from faults.defect import Defect

SHARDS = "repro/data/shards.py"
OF_SHARDS, GOLDEN = "tests/data/test_shards.py::", "tests/data/test_golden_order.py::"

DEFECTS: tuple[Defect, ...] = (
    # one file a shard
    Defect(
        "every shard that was read stays open",
        SHARDS,
        "functools.lru_cache(OPEN_SHARDS)",
        "functools.lru_cache(None)",
        (f"{OF_SHARDS}test_few_files_are_open_however_many_there_are",),
    ),
    Defect(
        "a shard that was cut short is read",
        SHARDS,
        "        if size != (expected",
        "        if size > (expected",
        (f"{OF_SHARDS}test_half_a_shard_is_named",),
    ),
    Defect(
        "a sentence begins one token early",
        SHARDS,
        "            found.append(ids[begin:end])\n",
        "            found.append(ids[begin - 1 : end - 1])\n",
        (f"{OF_SHARDS}test_every_sentence_comes_back", f"{GOLDEN}test_the_ids_are_as_they_were"),
    ),
    Defect(
        "the sides are read crosswise",
        SHARDS,
        "self.side = shards, SIDES.index(side)",
        "self.side = shards, 1 - SIDES.index(side)",
        (f"{OF_SHARDS}test_every_sentence_comes_back", f"{GOLDEN}test_the_ids_are_as_they_were"),
    ),
    Defect(
        "a shard counts its pairs by one side",
        SHARDS,
        "    counts = counted(*lengths)\n",
        "    counts = counted(lengths[0], lengths[0])\n",
        (f"{OF_SHARDS}test_a_shard_knows_how_many_pairs_have_which_lengths",),
    ),
)
