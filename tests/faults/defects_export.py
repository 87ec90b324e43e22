"""Defects of models that leave the house, each with the tests that notice it; some need transformers."""

from faults.defect import Defect

OF_EXPORT, OF_MARIAN = "tests/runs/test_export.py::test_", "tests/decoding/test_marian.py::test_"
REFUSED = f"{OF_MARIAN}what_it_cannot_express_is_refused"
AS_LIKELY = f"{OF_MARIAN}given_targets_are_as_likely_in_both_but_for_the_epsilon"
READS = f"{OF_MARIAN}its_tokenizer_reads_and_writes_as_ours_does"

DEFECTS: tuple[Defect, ...] = (
    Defect(
        "engines are compared without the length penalty",
        "benchmarks/engines.py",
        "/ ((5 + n) / 6) ** search.alpha",
        "",
        ("tests/test_engines.py::test_whose_translation_is_likelier_under_the_penalty_of_the_search",),
    ),
    Defect(
        "values of any width go to MarianMT",
        "repro/decoding/marian.py",
        "if not attention.d_k == attention.d_v == width:",
        "if not attention.d_k == width:",
        (REFUSED,),
    ),
    Defect(
        "learned positions go to MarianMT",
        "repro/decoding/marian.py",
        'if "source_positions.weight" in model.state_dict():',
        "if False:",
        (REFUSED,),
    ),
    Defect(
        "any Transformer goes to MarianMT, whatever its parts",
        "repro/decoding/marian.py",
        "if not isinstance(model, Transformer) or not model.in_ctranslate2:",
        "if not isinstance(model, Transformer):",
        (REFUSED,),
    ),
    Defect(
        "a row that a format does not have is refused without its name",
        "repro/runs/export.py",
        'f"row {run.row!r} of {run.table} cannot be exported to {to}: {error}"',
        'f"{error}"',
        (f"{OF_EXPORT}a_row_that_the_format_does_not_have_is_named",),
    ),
    Defect(
        "the embedding for MarianMT keeps our order of dimensions",
        "repro/decoding/marian.py",
        "torch.cat([matrix, matrix.new_zeros(1, d_model)])[:, order]",
        "torch.cat([matrix, matrix.new_zeros(1, d_model)])",
        (AS_LIKELY,),
    ),
    Defect(
        "MarianMT may write its start symbol",
        "repro/decoding/marian.py",
        "bias[0, -1] = NEVER",
        "bias[0, -1] = 0.0",
        (AS_LIKELY,),
    ),
    Defect(
        "a line for MarianMT does not end",
        "repro/decoding/marian.py",
        '"single": [{"Sequence": {"id": "A", "type_id": 0}}, end],',
        '"single": [{"Sequence": {"id": "A", "type_id": 0}}],',
        (READS,),
    ),
    Defect(
        "letters of the end symbol end a line for MarianMT",
        "repro/decoding/marian.py",
        '"split_special_tokens": True,',
        '"split_special_tokens": False,',
        (READS,),
    ),
    Defect(
        "damaged weights are opened",
        "repro/runs/load.py",
        'if hashlib.sha256(contents).hexdigest() != origin["weights"]:',
        'if origin["weights"] is None:',
        (f"{OF_EXPORT}what_went_out_as_safetensors_comes_back_to_the_bit",),
    ),
    Defect(
        "an export for others is opened as a run",
        "repro/runs/load.py",
        'if origin["format"] != "safetensors":',
        'if not origin["format"]:',
        (f"{OF_EXPORT}one_format_does_not_take_the_folder_of_another_and_is_not_read_as_a_run",),
    ),
    Defect(
        "one format takes the folder of another",
        "repro/runs/export.py",
        "_exported(place) != (run.run, to):",
        "_exported(place)[0] != run.run:",
        (f"{OF_EXPORT}one_format_does_not_take_the_folder_of_another_and_is_not_read_as_a_run",),
    ),
    Defect(
        "a file is taken for a folder to export to",
        "repro/runs/export.py",
        "if place.exists() and not place.is_dir():",
        "if False:",
        (f"{OF_EXPORT}bad_words_are_named",),
    ),
    Defect(
        "any transformers opens an export",
        "repro/runs/examples/with_transformers.py",
        'if tuple(map(int, found.split(".")[:2])) < OLDEST:',
        "if not found:",
        (f"{OF_EXPORT}a_transformers_that_is_too_old_is_named_before_it_is_imported",),
    ),
    Defect(
        "only the first number of a version of transformers is looked at",
        "repro/runs/examples/with_transformers.py",
        'if tuple(map(int, found.split(".")[:2])) < OLDEST:',
        'if int(found.split(".")[0]) < OLDEST[0]:',
        (f"{OF_EXPORT}a_transformers_that_is_too_old_is_named_before_it_is_imported",),
    ),
    Defect(
        "MarianMT's decoder begins with the end symbol",
        "repro/decoding/marian.py",
        '"decoder_start_token_id": size,',
        '"decoder_start_token_id": EOS,',
        (f"{OF_MARIAN}its_generate_makes_of_200_lines_of_text_what_we_do",),
    ),
    Defect(
        "links of the README lead nowhere on the page of an index",
        "setup.py",
        "long_description=page,",
        'long_description=(ROOT / "README.md").read_text("utf-8"),',
        ("tests/test_project.py::test_a_built_package_has_the_readme_without_a_link_to_nowhere",),
    ),
    Defect(
        "a link of the description forgets which release it is of",
        "setup.py",
        'place = "HEAD" if "dev" in version else f"v{version}"',
        'place = "HEAD"',
        ("tests/test_project.py::test_links_on_the_page_of_an_index_lead_to_the_release_or_name_the_file",),
    ),
    Defect(
        "transformers is imported before its version is looked at",
        "repro/runs/examples/with_transformers.py",
        '    found = version("transformers")\n',
        "    import transformers\n\n    found = transformers.__version__\n",
        (f"{OF_EXPORT}a_transformers_that_is_too_old_is_named_before_it_is_imported",),
    ),
    Defect(
        "to use a run imports what trains one",
        "repro/runs/load.py",
        "    from repro.training.averaging import averaged",
        "    import repro.training.loop\n    from repro.training.averaging import averaged",
        ("tests/cli/test_decode.py::test_a_run_is_used_without_what_only_training_takes",),
    ),
    Defect(
        "to score with a run imports the data module",
        "repro/runs/use.py",
        "    from repro.data.datasets import DevBatches\n\n    source",
        "    from repro.data.datamodule import DevBatches\n\n    source",
        ("tests/cli/test_decode.py::test_a_run_is_used_without_what_only_training_takes",),
    ),
)
