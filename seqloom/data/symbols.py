"""The four symbols every vocabulary begins with."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SYMBOLS = ("<pad>", "<unk>", "<bos>", "<eos>")
