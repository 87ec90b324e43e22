"""What stands in the report of a scale, in order: each a function of what is known of the scale.

A new section is a function in a file of its own, and a name in this tuple. It returns None where the scale has nothing
for it to show.
"""

from collections.abc import Callable

from repro.pages.scale_data import ScaleData
from repro.web.charts import curves_section, differences_section
from repro.web.explorables import explorables_section
from repro.web.inside import inside_section
from repro.web.overview import overview_section
from repro.web.runs import runs_section
from repro.web.section import Section
from repro.web.sentences import sentences_section
from repro.web.tables import table3_section, tables_section
from repro.web.verdicts import claims_section, statements_section

Maker = Callable[[ScaleData], Section | None]
SECTIONS: tuple[Maker, ...] = (
    overview_section,
    table3_section,
    differences_section,
    curves_section,
    claims_section,
    statements_section,
    tables_section,
    sentences_section,
    inside_section,
    explorables_section,
    runs_section,
)


def sections_of(data: ScaleData, makers: tuple[Maker, ...] = SECTIONS) -> list[Section]:
    """The sections that have something to show at this scale."""
    return [section for make in makers if (section := make(data)) is not None]
