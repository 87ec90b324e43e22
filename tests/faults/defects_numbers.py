"""Defects that leave everything running and make the numbers other than the paper's, and the tests that notice them."""

from faults.defect import Defect

LAYERS, TRANSFORMER = "repro/model/layers.py", "repro/model/transformer.py"
OF_LAYERS, OF_TRANSFORMER = "tests/model/test_layers.py::test_", "tests/model/test_transformer.py::test_"
SUB_LAYERS = (f"{OF_LAYERS}dropout_falls_on_each_sub_layers_output_before_it_is_added",)
SUMS = tuple(
    f"{OF_TRANSFORMER}dropout_falls_on_the_sum_of_embedding_and_position_of_both_stacks[{in_a_row}]"
    for in_a_row in (False, True)
)

TABLE2, FIDELITY, PUBLISHED = "experiments/table2.py", "repro/fidelity.py", "repro/published.py"
ROWS, RULES = "tests/test_rows.py::test_", "tests/test_fidelity.py::test_"
AS_SECTION_6_1 = (f"{ROWS}table_2_is_averaged_dropped_out_and_scored_as_section_6_1_says",)
ENGINES = "tests/decoding/test_engine.py::test_"
PRINTED = ("tests/test_published.py::test_each_number_is_the_printed_one",)

DEFECTS: tuple[Defect, ...] = (
    # the model
    Defect(
        "dropout after the residual sum",
        LAYERS,
        "x = self.norms[0](x + self.dropout(self.self_attention(x, source_bias)))",
        "x = self.norms[0](self.dropout(x + self.self_attention(x, source_bias)))",
        SUB_LAYERS,
    ),
    Defect(
        "dropout after the residual sum of the decoder",
        LAYERS,
        "x = self.norms[1](x + self.dropout(self.cross_attention(x, memory, source_bias)))",
        "x = self.norms[1](self.dropout(x + self.cross_attention(x, memory, source_bias)))",
        SUB_LAYERS,
    ),
    Defect(
        "dropout after the norm",
        LAYERS,
        "        return self.norms[1](x + self.dropout(self.feed_forward(x)))\n\n\n@dataclass",
        "        return self.dropout(self.norms[1](x + self.feed_forward(x)))\n\n\n@dataclass",
        SUB_LAYERS,
    ),
    Defect(
        "dropout after the norm of the decoder",
        LAYERS,
        "        return self.norms[2](x + self.dropout(self.feed_forward(x)))",
        "        return self.dropout(self.norms[2](x + self.feed_forward(x)))",
        SUB_LAYERS,
    ),
    Defect(
        "dropout of what a sub-layer reads",
        LAYERS,
        "x = self.norms[0](x + self.dropout(self.self_attention(x, causal_bias)))",
        "x = self.norms[0](x + self.self_attention(self.dropout(x), causal_bias))",
        SUB_LAYERS,
    ),
    Defect(
        "dropout on the embedding alone",
        TRANSFORMER,
        "embedded = self.embedding(ids) + positions(0, ids.shape[1])\n        return self.dropout(embedded)",
        "return self.dropout(self.embedding(ids)) + positions(0, ids.shape[1])\n        return self.dropout(embedded)",
        SUMS[:1],
    ),
    Defect(
        "dropout on the embedding alone where sentences stand in a row",
        TRANSFORMER,
        "= self.embedding(ids.ids) + positions(0, ids.longest)[ids.position]\n",
        "= self.dropout(self.embedding(ids.ids)) + positions(0, ids.longest)[ids.position]\n"
        "            return embedded\n",
        SUMS[1:],
    ),
    # Table 2
    Defect(
        "the base of Table 2 is not averaged",
        TABLE2,
        "return replace(base, average=5)",
        "return replace(base, average=1)",
        AS_SECTION_6_1,
    ),
    Defect(
        "of the big model of Table 2 five checkpoints are averaged",
        TABLE2,
        "return replace(big(base), average=20)",
        "return replace(big(base), average=5)",
        AS_SECTION_6_1,
    ),
    Defect(
        "English-French drops out like English-German",
        TABLE2,
        "return replace(big_averaged(base), dropout=base.dropout)",
        "return big_averaged(base)",
        AS_SECTION_6_1,
    ),
    Defect(
        "a row of Table 2 beside another's number",
        TABLE2,
        'base_averaged, printed(BASE, "en-fr"), "en-fr"',
        'base_averaged, printed(BIG, "en-fr"), "en-fr"',
        AS_SECTION_6_1,
    ),
    Defect(
        "a row of Table 2 in another language",
        TABLE2,
        'big_french, printed(BIG, "en-fr"), "en-fr"',
        'big_french, printed(BIG, "en-fr"), "en-de"',
        AS_SECTION_6_1,
    ),
    Defect(
        "no rule looks at the dropout of English-French",
        FIDELITY,
        'kept=lambda record: record.hyper["dropout"] == BIG_DROPOUT.get(record.pair),',
        'kept=lambda record: record.hyper["dropout"] in BIG_DROPOUT.values(),',
        (f"{RULES}base_and_big_drop_out_as_the_paper_says[big en-fr-table2-en-fr-0.3-dropout of the big model]",),
    ),
    Defect(
        "the base of Table 2 may drop out as it likes",
        FIDELITY,
        "rows=lambda record: _is_base(record) or _is_base_of_table_2(record),",
        "rows=_is_base,",
        (f"{RULES}base_and_big_drop_out_as_the_paper_says[base en-fr-table2-en-fr-0.3-dropout of the base model]",),
    ),
    Defect(
        "two systems of Table 2 have changed numbers",
        PUBLISHED,
        'System(name="ByteNet", kind="single", bleu={"en-de": 23.75})',
        'System(name="ByteNet", kind="single", bleu={"en-de": 25.16})',
        PRINTED,
    ),
    Defect(
        "a parser of Table 4 has another's number",
        PUBLISHED,
        'Parser(name="McClosky et al. (2006)", training="semi-supervised", f1=92.1)',
        'Parser(name="McClosky et al. (2006)", training="semi-supervised", f1=91.2)',
        PRINTED,
    ),
    # the search
    Defect(
        "bfloat16 is laid out on a processor that cannot",
        "repro/products.py",
        "(dtype == torch.bfloat16 and has_bfloat16())",
        "dtype == torch.bfloat16",
        (f"{ENGINES}a_processor_without_bfloat16_products_of_its_own_translates_all_the_same",),
    ),
)
