"""One line for each badge and processor, with what stands against more."""

from typing import Any

from paper_runs import paper_run

from repro.results.comparable import repeatable
from repro.results.frame import table
from repro.results.record import Record


def run(badge: str | None = "L1", *against: str, replayed: int = 2, **stamp: Any) -> Record:
    told: Any = {
        "badge": badge, "against": list(against), "order": "ab", "plan": "ab", "weights": None, "replayed": replayed,
        "repeated_lines": 0,
    }  # fmt: skip
    origin: Any = paper_run().stamp | {"device": "AMD EPYC", "instructions": "AVX2"} | stamp
    return paper_run(determinism=told, stamp=origin)


def test_each_badge_processor_and_reason_has_a_line() -> None:
    later = [run("L0", "the processor was another", replayed=0), run(instructions="AVX512"), run(None)]
    found = repeatable([run(), run(replayed=3), *later])
    of_l1 = "L1, one CPU process, the same to the bit on such a processor: "
    assert found[:3] == [
        "L0, read what the plan says, the same on every machine: 1 run; AMD EPYC, AVX2; "
        "what rules out a higher badge: the processor was another.",
        f"{of_l1}2 runs; AMD EPYC, AVX2; 5 micro-batches computed twice.",
        f"{of_l1}1 run; AMD EPYC, AVX512; 2 micro-batches computed twice.",
    ]
    assert found[3].startswith("No badge, since what was read is not what was planned: 1 run")
    old = paper_run(stamp=paper_run().stamp | {"device": "AMD EPYC"})
    said = "Not checked, from the time before badges: 2 runs; AMD EPYC, instructions not noted."
    assert repeatable([old, old]) == [said]


def test_processors_of_one_name_are_told_apart_by_their_model() -> None:
    found = repeatable([run(cpu="AMD EPYC", cpu_model=model) for model in ("family 25", "family 26", None)])
    assert ["family 25" in line for line in found] == [True, False, False]
    assert "; AMD EPYC (family 26), AVX2; " in found[1]
    assert "; AMD EPYC, AVX2; " in found[2]


def test_a_table_carries_its_lines() -> None:
    frame = table([], base=[run()])
    assert frame.attrs["repeatable"] == repeatable([run()])
    told = frame["row"].attrs["repeatable"]
    assert told is frame.attrs["repeatable"], "pandas would copy all that is told with each column"
    assert repeatable([]) == []
