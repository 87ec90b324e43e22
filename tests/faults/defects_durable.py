"""Defects of writing, of the disk and of security, each with the tests that notice it."""

from faults.defect import Defect

DURABLE = "repro/durable.py"
DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the file is not pushed to the disk",
        DURABLE,
        "            os.fsync(file.fileno())\n",
        "            file.fileno()\n",
        ("tests/test_durable.py::test_the_bytes_are_on_the_disk_before_they_take_the_name",),
    ),
)
