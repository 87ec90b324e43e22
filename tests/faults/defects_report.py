"""Defects of the report for the browser, each with the tests that notice it; they need Chromium."""

from faults.defect import Defect

OF_FRAME, OF_TABLES, OF_CHARTS = (f"tests/web/test_{name}.py::test_" for name in ("report", "tables", "charts"))
OF_PRINT, OF_INFLATE = "tests/web/test_print.py::test_", "tests/web/test_inflate.py::test_"
OF_CHOICES = "tests/web/test_chart_choices.py::test_"
OF_OPENING = "tests/web/test_opening.py::test_nothing_"
OF_SENTENCES = "tests/web/test_sentences.py::test_"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "a text in the data of a report ends its script",
        "repro/web/section.py",
        "base64.b64encode(packed(text.encode())).decode()",
        "text",
        (f"{OF_FRAME}data_comes_out_as_it_went_in_and_ends_no_script",),
    ),
    Defect(
        "a report may run any script that stands in it",
        "repro/web/report.py",
        "script-src {allowed}",
        "script-src 'unsafe-inline'",
        (
            f"{OF_FRAME}a_script_stands_once_and_the_policy_names_each_by_its_hash",
            f"{OF_TABLES}a_script_that_came_in_with_a_name_would_not_run",
        ),
    ),
    Defect(
        "a row of a report opens the run of another row",
        "repro/web/keys.py",
        "found.setdefault((record.table, record.row), key)",
        "found.setdefault((record.table, record.row), next(iter(run_keys(result_set))))",
        (f"{OF_TABLES}a_row_opens_its_runs_and_escape_leads_back",),
    ),
    Defect(
        "the command under a run makes seed 1 again",
        "repro/web/again.py",
        "Seeds(record.seed, record.seed)",
        "Seeds(1, 1)",
        (f"{OF_TABLES}a_row_opens_its_runs_and_escape_leads_back",),
    ),
    Defect(
        "a name that contradicts an option wins without a word",
        "repro/runs/world.py",
        'if name != "scale" and typed not in (getattr(USUAL, name), value):',
        "if not value:",
        ("tests/runs/test_world.py::test_an_option_that_contradicts_the_name_is_refused",),
    ),
    Defect(
        "the report's command for a text of one's own reads the generated one",
        "repro/web/again.py",
        "return options_of(scale)",
        'return options_of(scale.partition("-folder")[0])',
        ("tests/web/test_again.py::test_the_options_are_those_of_the_name[laptop-folder-0123abcd-options3]",),
    ),
    Defect(
        "rows of the paper share axes with a model without norms",
        "repro/web/charts.py",
        'groups["rows" if line.is_printed else "ours"]',
        'groups["rows"]',
        (f"{OF_CHARTS}the_papers_rows_come_first_and_have_axes_of_their_own",),
    ),
    Defect(
        "the test scores that Table 2 prints are held against dev",
        "repro/figures/forest.py",
        "None if row.table == table2.NAME else endpoint",
        "endpoint",
        ("tests/figures/test_forest.py::test_scores_of_test_as_printed_are_not_held_against_dev",),
    ),
    Defect(
        "a drawn area of costs chooses no curve",
        "repro/web/charts.py",
        "_bands(_kept(of_table, picked), shown, dash, loss_axis)",
        "_bands(_kept(of_table), shown, dash, loss_axis)",
        (f"{OF_CHARTS}a_drawn_area_of_costs_chooses_the_curves",),
    ),
    Defect(
        "a row that is chosen by its name stands alone",
        "repro/web/charts.py",
        "datum.row == named || datum.row == '{BASE}'",
        "datum.row == named",
        ("tests/web/test_chart_choices.py::test_a_row_is_chosen_by_its_name_and_seen_beside_the_base",),
    ),
    Defect(
        "a choice by name is kept when Escape takes choices back",
        "repro/web/assets/charts.js",
        'if (!select && (all || bind.input !== "select"))',
        "if (!select)",
        ("tests/web/test_chart_choices.py::test_a_row_is_chosen_by_its_name_and_seen_beside_the_base",),
    ),
    Defect(
        "a report begins with claims that are still open",
        "repro/web/overview.py",
        'if verdict_class(outcome) != "open"',
        'if outcome != "not judged"',
        ("tests/web/test_overview.py::test_claims_that_came_out_stand_first_and_lead_to_their_numbers",),
    ),
    Defect(
        "points of a chart are not reached by keyboard",
        "repro/web/assets/charts.js",
        '"tabindex", node === to ? 0 : -1',
        '"tabindex", -1',
        (f"{OF_CHOICES}points_are_reached_with_tab_and_open_their_row_with_enter",),
    ),
    Defect(
        "left and right in a chart go the way of up and down",
        "repro/web/assets/charts.js",
        "[across ? 0 : 1]",
        "[1]",
        (f"{OF_CHOICES}right_and_left_go_by_what_lies_beside",),
    ),
    Defect(
        "Escape takes back nothing that was chosen in a chart",
        "repro/web/assets/charts.js",
        "draw(key, choices(key, false))",
        "draw(key)",
        (f"{OF_CHOICES}names_of_the_legend_are_pressed_by_keys",),
    ),
    Defect(
        "a name that was chosen in a legend cannot be given up",
        "repro/web/assets/charts.js",
        'view.addEventListener("dblclick"',
        'view.addEventListener("auxclick"',
        (f"{OF_CHOICES}two_clicks_on_a_name_take_its_choice_back",),
    ),
    Defect(
        "what was chosen in a chart is lost with the theme",
        "repro/web/assets/charts.js",
        "if (param.name in kept)",
        "if (false)",
        (f"{OF_CHOICES}what_was_chosen_stays_when_the_theme_or_the_width_is_another",),
    ),
    Defect(
        "the name of a row beside a chart leads nowhere",
        "repro/web/assets/charts.js",
        'label.addEventListener("click"',
        'label.addEventListener("auxclick"',
        (f"{OF_CHOICES}the_name_of_a_row_opens_it",),
    ),
    Defect(
        "an axis of losses that are alike has no label",
        "repro/web/charts.py",
        'return {"values": TICKS} if told else {"tickCount": 6}',
        'return {"values": TICKS}',
        (f"{OF_CHARTS}axes_have_two_labels_and_no_label_twice_where_rows_are_alike",),
    ),
    Defect(
        "a sentence of the report is scored with orders that it is too short for",
        "repro/web/sentences.py",
        "effective_order=True",
        "effective_order=False",
        (f"{OF_SENTENCES}each_translation_has_the_scores_of_sacrebleu",),
    ),
    Defect(
        "a sentence of the report stands beside the source of the one before",
        "repro/web/sentences.py",
        "pairs[i] if pairs",
        "pairs[i - 1] if pairs",
        (f"{OF_SENTENCES}each_translation_has_the_scores_of_sacrebleu",),
    ),
    Defect(
        "the library of charts runs when a report is opened",
        "repro/web/assets/report.html.j2",
        '<script type="text/plain" id="library">',
        '<script id="library">',
        (
            f"{OF_FRAME}charts_bring_their_library_once_and_nothing_else_does",
            f"{OF_OPENING}is_made_before_it_is_looked_at",
        ),
    ),
    Defect(
        "every view is made when a report is opened",
        "repro/web/assets/report.js",
        "    unseen.set(at, act);\n    sight.observe(at);\n",
        "    act();\n",
        (f"{OF_OPENING}is_made_before_it_is_looked_at",),
    ),
    Defect(
        "what was not looked at is not printed",
        "repro/web/assets/report.js",
        'addEventListener("beforeprint", print);',
        "",
        (f"{OF_PRINT}a_print_has_every_view_as_soon_as_the_page_is_there",),
    ),
    Defect(
        "heads and search are drawn a moment after a print began",
        "repro/web/assets/inside.js",
        "&& showHeads());\n  open();",
        "&& showHeads());\n  setTimeout(open);",
        (f"{OF_PRINT}a_print_has_every_view_as_soon_as_the_page_is_there",),
    ),
    Defect(
        "a part that repeats itself as it is written is taken from before it",
        "repro/web/assets/inflate.js",
        "for (let i = 0; i < length; i++) out[filled++] = out[from + i];",
        "out.copyWithin(filled, from, from + length), filled += length;",
        (f"{OF_INFLATE}bytes_come_out_as_they_went_in",),
    ),
    Defect(
        "damaged bytes are shown as if they were whole",
        "repro/web/assets/inflate.js",
        "if (filled !== size || check(out) !== sum)",
        "if (filled !== size)",
        (f"{OF_INFLATE}what_is_damaged_is_refused_by_name",),
    ),
    Defect(
        "counts of translations are kept whatever becomes of their file",
        "repro/results/sentences.py",
        "(seen.st_mtime_ns, seen.st_size, seen.st_ino)",
        "()",
        (
            "tests/results/test_sentences.py::test_counts_are_read_once_and_again_where_the_file_or_the_record_is_another",
        ),
    ),
    Defect(
        "a row is held against the reference, whatever is chosen",
        "repro/web/assets/sentences.js",
        "const other = there === null ? one.reference : one.texts[one.of[there]];",
        "const other = one.reference;",
        (f"{OF_SENTENCES}a_row_is_held_against_another",),
    ),
)
