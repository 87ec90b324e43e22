"""What the server of `workload.py` does once, before it forks: import all, and read the code that decides a run."""

from importlib import import_module

from repro.results.provenance import fingerprint, parsing_digest

for name in ("pandas", "torch._dynamo", "repro.corpora.prepare", "repro.runs.run", "repro.runs.sweep"):
    import_module(name)
fingerprint()
parsing_digest()
