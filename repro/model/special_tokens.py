"""The special tokens: constants, never configuration.

``PAD`` fills the ends of short sentences. It is also what the decoder reads before the first target
token: its embedding is the zero vector, so "shifted right" (paper: section 3.1) becomes a zero vector
at position 0, as in the first public code, and there is no start symbol to predict.
"""

PAD = 0
EOS = 1
SPECIAL = ("<pad>", "</s>")  # their names in the tokenizer, at these ids
