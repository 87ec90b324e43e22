"""Published translations of newstest2017 by recurrent, convolutional and self-attentive systems, scored here.

Run:   python experiments/outputs_2017.py --data-dir FOLDER          (a minute; no training)
"""

import sys
from collections.abc import Sequence

from repro.pages.build import build_measured, write
from repro.results.measured import Outputs2017, found_outputs, save, score_outputs
from repro.runs.command import Parser, code_of, ended
from repro.runs.options import add_options, refuse_published
from repro.storage import atomic


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the published translations, and write newstest2017/ with its page, by default in results/own/."""
    parser = Parser(description=main.__doc__)
    add_options(
        parser,
        "data_dir",
        "results_dir",
        data_dir="the folder of the translations; default: that of REPRO_DATA",
        results_dir="where newstest2017/ is made",
    )
    options = parser.parse_args(arguments)
    try:
        refuse_published(options.results_dir)
        atomic.check_folder(options.results_dir)
        save(options.results_dir, score_outputs(found_outputs(options.data_dir)))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return code_of(error)
    print(*write(build_measured(options.results_dir, Outputs2017)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))
