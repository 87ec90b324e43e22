"""The special tokens: constants, never configuration.

``PAD`` fills the ends of short sentences. The decoder also reads it before the first target token. Its
embedding is the zero vector, so "shifted right" (paper: section 3.1) puts a zero vector at position 0,
as in the first public code. So there is no start symbol that could be predicted.
"""

PAD = 0
EOS = 1
SPECIAL = ("<pad>", "</s>")  # their names in the tokenizer, at these ids
