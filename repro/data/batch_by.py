"""The two ways to count the size of a batch, by name: what is counted in each stands in `repro/data/batching.py`."""

RECORDED = {"padded_tokens": "slots", "tokens": "tokens"}  # what records, run ids and names of folders call them
