"""Defects of what a run meets: flipped bits, odd systems, names and consoles; each with the tests that notice it."""

from faults.defect import Defect

JOURNAL = "tests/test_journal.py::"

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
)
