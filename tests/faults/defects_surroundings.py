"""Defects of what a run meets: flipped bits, odd systems, names and consoles; each with the tests that notice it."""

from faults.defect import Defect

JOURNAL, TRACKING = "tests/test_journal.py::", "tests/tracking/"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a line's checksum is not held against it",
        "repro/journal.py",
        "zlib.crc32(checked[2]) == int(checked[1], 16) if checked",
        "True if checked",
        (JOURNAL + "test_each_flipped_bit_is_noticed", JOURNAL + "test_whoever_removes_a_damaged_line_can_go_on"),
    ),
    Defect(
        "a damaged line feed makes a line a torn one",
        "repro/journal.py",
        'if b"}" in text[:-1] and not',
        "if False and not",
        (JOURNAL + "test_each_flipped_bit_is_noticed",),
    ),
    Defect(
        "lines without a checksum count for ever, however they begin",
        "repro/journal.py",
        "else text.startswith(UNCHECKED)",
        "else True",
        (JOURNAL + "test_each_flipped_bit_is_noticed",),
    ),
    Defect(
        "MLflow's database is where its address says",
        "repro/tracking/store.py",
        'return URL.create("sqlite", database=str(path)).render_as_string()',
        'return f"sqlite:///{path}"',
        (TRACKING + "test_store.py::test_a_file_may_have_any_name",),
    ),
    Defect(
        "MLflow is told of times before 1970",
        "repro/tracking/folder.py",
        'max(0, round(line["time"] * 1000))',
        'round(line["time"] * 1000)',
        (TRACKING + "test_mirror.py::test_a_clock_before_1970_costs_the_times_alone",),
    ),
)
