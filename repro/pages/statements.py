"""The verdicts on what teaching texts say, on a page like that of the claims and with an error rate of its own."""

from collections.abc import Sequence

from repro.claims.evidence import Evidence
from repro.claims.judge import Judged
from repro.pages import claims
from repro.render.page import Page
from repro.results.summary import Summary

NAME = "statements"
OF_TEXTS = claims.Subject("Statements of teaching texts", "statements", "what is said")


def page(judged: Sequence[Judged], evidence: Evidence, runs: Summary, *, to_project: str = "../..") -> Page:
    """The verdicts of one scale; `to_project` leads from the page to the project's folder."""
    return claims.page(judged, evidence, runs, to_project=to_project, of=OF_TEXTS)
