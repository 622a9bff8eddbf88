"""Reversing words by Deep-Att: stacks of three layers on both sides."""

from tests.learn.tiny import recipe, words

pairs = [(word, word[::-1]) for word in words(1600, range(1, 6))]
train, test = pairs[:1400], pairs[1400:]
LONG = [pair for pair in test if len(pair[0]) >= 4]


def test_unseen_words_are_reversed(learn):
    part = {"type": "deep_att", "embedding_size": 32, "size": 48, "layers": 3}
    decoder = {**part, "attention": {"type": "additive", "size": 32}}
    model = learn(recipe(part, decoder, steps=200, learning_rate=5e-3, tokens=256), train)
    assert model.evaluate(LONG)["exact"] >= 55
    right, wrong = (model.score([("abcd", answer)])[0] for answer in ("dcba", "abcd"))
    assert right > wrong + 3  # nats
