"""The names of the two ways to count the size of a batch; `repro/data/batching.py` says what each counts."""

RECORDED = {"padded_tokens": "slots", "tokens": "tokens"}  # their names in records, run ids and folder names
