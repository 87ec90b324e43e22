"""Defects of text in many shards, and the tests that must notice them."""

from faults.defect import Defect

SHARDS, BATCHING, DATASETS = "repro/data/shards.py", "repro/data/batching.py", "repro/data/datasets.py"
OF_SHARDS, GOLDEN = "tests/data/test_shards.py::", "tests/data/test_golden_order.py::"
OF_GROUPS, OF_REGISTER = "tests/data/test_groups.py::", "tests/storage/test_register.py::"
REGISTER = "repro/storage/register.py"

DEFECTS: tuple[Defect, ...] = (
    # one file a shard
    Defect(
        "every shard that was read stays open",
        SHARDS,
        "functools.lru_cache(_open_at_once(self._n_shards))",
        "functools.lru_cache(None)",
        (f"{OF_SHARDS}test_few_files_are_open_however_many_there_are",),
    ),
    Defect(
        "a batch that touches many shards opens them again and again",
        SHARDS,
        "max(OPEN_FILES, shards + OTHER_FILES)",
        "OPEN_FILES",
        (f"{OF_SHARDS}test_as_many_shards_are_open_as_the_system_allows",),
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
    # a plan in groups
    Defect(
        "a group is lost",
        BATCHING,
        "np.flatnonzero(np.diff(group)) + 1)]",
        "np.flatnonzero(np.diff(group)) + 1)][:-1] or [[0]]",
        (f"{OF_GROUPS}test_each_pair_once_an_epoch_and_its_tokens_known",),
    ),
    Defect(
        "the last update of a group is left out",
        BATCHING,
        "for i in range(done, len(plan)):",
        "for i in range(done, max(done + 1, len(plan) - 1)):",
        (
            f"{OF_GROUPS}test_each_pair_once_an_epoch_and_its_tokens_known",
            f"{OF_GROUPS}test_starting_anywhere_equals_skipping_there",
        ),
    ),
    Defect(
        "a start behind the border of a group is off by one",
        BATCHING,
        "done = max(0, done - n)",
        "done = max(0, done - n - 1)",
        (f"{OF_GROUPS}test_starting_anywhere_equals_skipping_there",),
    ),
    Defect(
        "sentences of a group keep the numbers they have within it",
        BATCHING,
        "order=self._sentences(group)[made.order])",
        "order=made.order)",
        (f"{OF_GROUPS}test_each_pair_once_an_epoch_and_its_tokens_known",),
    ),
    Defect(
        "what is read depends on the number of processes",
        DATASETS,
        "islice(self.plan.updates(self.start),",
        "islice(self.plan.updates(self.start + self.world // 2),",
        (f"{OF_GROUPS}test_all_processes_together_read_the_plan",),
    ),
    Defect(
        "groups stand in the same order in every epoch",
        BATCHING,
        "/{epoch}/groups",
        "/groups",
        (f"{OF_GROUPS}test_groups_are_of_like_size_and_the_same_in_each_epoch",),
    ),
    Defect(
        "texts are planned in groups from forty million pairs on",
        BATCHING,
        "GROUPS_FROM = 50_000_000",
        "GROUPS_FROM = 40_000_000",
        (f"{OF_GROUPS}test_the_threshold_is_fifty_million_pairs",),
    ),
    Defect(
        "a start reads the lengths of all groups",
        BATCHING,
        "zip(*map(self.lengths.of, group.shards), strict=True))",
        "zip(*[self.lengths.of(i) for i in range(len(self.lengths.sizes))][: len(group.shards)], strict=True))",
        (f"{OF_GROUPS}test_a_start_reads_the_shards_of_one_group_and_the_number_of_updates_none",),
    ),
    Defect(
        "processes compare only the group that is read first",
        BATCHING,
        "        for group in self.groups:\n            for numbers in (group.shards",
        "        for group in ():\n            for numbers in (group.shards",
        (f"{OF_GROUPS}test_processes_agree_on_a_plan_by_its_digest",),
    ),
    # verified once a machine
    Defect(
        "a note outlives the start of the machine",
        REGISTER,
        "return json.dumps([self._boot, ",
        'return json.dumps(["", ',
        (f"{OF_REGISTER}test_a_machine_that_was_started_again_reads_again_and_forgets",),
    ),
    Defect(
        "a bit that flipped is not seen where the time was set back",
        REGISTER,
        "status.st_ctime_ns, ",
        "0, ",
        (f"{OF_REGISTER}test_what_has_changed_is_read_again[a bit]",),
    ),
    Defect(
        "machines trust each other's notes",
        REGISTER,
        "{socket.gethostname()}.lock",
        "lock",
        (f"{OF_REGISTER}test_another_machine_reads_for_itself",),
    ),
    Defect(
        "processes that start at once all read",
        "repro/data/workers.py",
        "    with alone(register.path, tell):\n        register.read()\n",
        "    register.read()\n    with alone(register.path, tell):\n",
        (f"{OF_REGISTER}test_of_eight_processes_at_once_one_reads",),
    ),
    Defect(
        "a torn note spoils the next one",
        REGISTER,
        'before.rfind(b"\\n") + 1 if is_of_now else 0',
        "len(before) if is_of_now else 0",
        (f"{OF_REGISTER}test_a_damaged_note_costs_a_reading_and_nothing_else",),
    ),
    Defect(
        "what is to be checked is not read",
        "repro/data/prepare.py",
        "None if check else Register(encoded)",
        "Register(encoded)",
        ("tests/data/test_prepare.py::test_shards_are_read_once_a_machine_unless_all_is_to_be_checked",),
    ),
)
