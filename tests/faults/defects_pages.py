"""Defects of what tables and pages show of a row, each with the tests that notice it."""

from faults.defect import Defect

LABELS, OF_LABELS = "repro/results/labels.py", "tests/results/test_labels.py::test_"
OF_PAGES = "tests/render/test_page.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "the browser's rate rises by another power of the warm-up",
        "repro/web/assets/explorables.js",
        "step * warmup ** -1.5",
        "step * warmup ** -1.4",
        ("tests/web/test_explorables.py::test_the_browser_computes_the_formulas_as_the_training_does",),
    ),
    Defect(
        "the paper's parameters stand as those of the model here",
        "repro/pages/columns.py",
        'Column(SIZE, "here", numbers(frame["params/here"] / 1e6, ".2f"))',
        'Column(SIZE, "here", numbers(frame["params/paper_size"] / 1e6, ".2f"))',
        (
            f"{OF_LABELS}a_page_shows_both_sizes_of_a_row_and_both_counts",
            f"{OF_LABELS}table_3_on_one_page_and_the_page_of_the_scale_show_them",
            f"{OF_LABELS}table_2_shows_them",
        ),
    ),
    Defect(
        "a row's name alone stands over another value",
        LABELS,
        'return f"{named[0]} (here {setting(value)})" if is_other else named[0]',
        "return named[0]",
        (
            f"{OF_LABELS}a_name_that_says_another_value_than_stands_here_is_followed_by_it",
            f"{OF_LABELS}latex_the_sheet_and_the_terminal_show_them",
            f"{OF_LABELS}figures_name_rows_alike",
            f"{OF_LABELS}a_dry_run_names_both_counts",
        ),
    ),
    Defect(
        "a setting here without that at the paper's size",
        LABELS,
        'else f"{texts[0]} ({texts[1]})"',
        "else texts[0]",
        (f"{OF_LABELS}a_page_shows_both_sizes_of_a_row_and_both_counts", f"{OF_LABELS}table_2_shows_them"),
    ),
    Defect(
        "what a row changes is that of the base",
        "repro/runs/table.py",
        "whole, here = _made(row, BASE), ",
        "whole, here = vars(BASE), ",
        (f"{OF_LABELS}a_page_shows_both_sizes_of_a_row_and_both_counts",),
    ),
    Defect(
        "a verdict does not say what the paper's sizes are here",
        "repro/results/summary.py",
        "rows_here=tuple(text for row, text in named.items() if text != row)",
        "rows_here=()",
        (f"{OF_LABELS}verdicts_say_what_the_sizes_of_their_claims_are_here",),
    ),
    Defect(
        "a bound without the score it is of",
        "repro/claims/judge.py",
        "if outcomes <= SETTLES_NOTHING and len({*reasons.values()}) == 1:",
        "if len({*reasons.values()}) == 1:",
        ("tests/claims/test_judge.py::test_a_claim_on_one_score_names_it",),
    ),
    Defect(
        "MLflow is told the paper's relation as that of this scale",
        "repro/runs/execution.py",
        "relation(vars(settings.scale.base), vars(settings.hyper))",
        "relation(vars(BASE), vars(settings.paper_hyper))",
        ("tests/test_experiment.py::test_mlflow_is_told_of_a_row_what_it_changes_and_both_counts",),
    ),
    Defect(
        "a pipe in a code of a table ends its cell",
        "repro/render/markdown.py",
        "code.replace('|', chr(92) + '|') if in_table else code",
        "code",
        (f"{OF_PAGES}cells_come_back_from_markdown_and_html",),
    ),
    Defect(
        "two codes side by side are one",
        "repro/render/markdown.py",
        "            if not is_between_blanks:  # where a backtick may stand beside it\n",
        "            if False:\n",
        (f"{OF_PAGES}cells_come_back_from_markdown_and_html", f"{OF_PAGES}texts_come_back_from_markdown_and_html"),
    ),
    Defect(
        "a text that begins like a list is one",
        "repro/render/markdown.py",
        "            return _paragraph(line(block.words))\n",
        "            return line(block.words).strip()\n",
        (f"{OF_PAGES}texts_come_back_from_markdown_and_html",),
    ),
    Defect(
        "a name in HTML is HTML",
        "repro/render/html.py",
        "    return escape(flat(text))",
        "    return flat(text)",
        (f"{OF_PAGES}cells_come_back_from_markdown_and_html", f"{OF_PAGES}texts_come_back_from_markdown_and_html"),
    ),
    Defect(
        "a name in LaTeX is a command",
        "repro/render/latex.py",
        r'**{"\\": r"\textbackslash{}",',
        "**{",
        (f"{OF_PAGES}a_text_comes_back_from_latex_token_by_token",),
    ),
    Defect(
        "a wide letter takes one place in a terminal",
        "repro/render/grid.py",
        '1 + (unicodedata.east_asian_width(c) in "WF")',
        "1",
        (f"{OF_PAGES}columns_in_a_terminal_by_hand", f"{OF_PAGES}a_terminal_is_told_nothing"),
    ),
    Defect(
        "a table of eleven columns stays whole",
        "repro/render/page.py",
        "len(parts[-1]) + len(run) > room",
        "False",
        (f"{OF_PAGES}a_wide_table_stands_in_parts_that_each_name_the_rows",),
    ),
    Defect(
        "a number is broken at its half-width",
        "repro/render/escape.py",
        '    return text.replace(" ", NO_BREAK) if is_number else text',
        "    return text",
        (f"{OF_PAGES}numbers_stay_on_one_line_and_words_do_not",),
    ),
    Defect(
        "a sign stands without its word",
        "repro/pages/words.py",
        "    return tuple(Text(words) for occurs, words in SIGNS if occurs(shown))",
        "    return ()",
        ("tests/pages/test_build.py::test_every_sign_is_explained_under_its_table",),
    ),
    Defect(
        "whether an interval reaches below zero is asked of what is written",
        "repro/pages/columns.py",
        'map(half_shown, frame[score], frame[score + "_half_width"])',
        'map(half_shown, frame[score].round(decimals), frame[score + "_half_width"].round(decimals))',
        ("tests/pages/test_table3.py::test_an_interval_that_would_reach_below_zero_is_not_shown",),
    ),
    Defect(
        "one published model is held against the mean of ours",
        "repro/pages/anchor.py",
        "math.sqrt(1 + n)",
        "1.0",
        tuple(
            f"tests/pages/test_anchor.py::test_one_published_model_is_held_against_one_more_of_ours[{case}]"
            for case in ("40.53-as one more run", "41.51-as one more run")
        ),
    ),
    Defect(
        "what nobody published is missing beside one's own",
        "repro/pages/columns.py",
        '["" if text == MISSING else text for text in texts]',
        "texts",
        ("tests/results/test_frame.py::test_yours_stand_beside_the_published_and_the_papers",),
    ),
)
