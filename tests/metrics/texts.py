"""Sentences with three references each, on which other programs have printed the figures of the tests."""

PREDICTIONS = [
    "A weaver is throwing the shuttle across an old wooden loom.",
    "The threads were dyed red, and they hang to dry in the sun!",
    "Two women sit at the loom; the women are weaving a carpet.",
    "He doesn't like spinning wool.",
    "A cat.",
    "The machine stopped.",
]
REFERENCES = [
    [
        "A weaver throws a shuttle across the old loom.",
        "An old woman weaves at a wooden loom.",
        "The shuttle is thrown by a weaver.",
    ],
    [
        "Red threads are hanging in the sun to dry.",
        "Someone has hung dyed threads out to dry.",
        "The dyer dries red thread in the sunlight.",
    ],
    [
        "Two women weave a carpet together.",
        "A carpet is woven by two women who sit at the loom.",
        "At the loom, two women are working on a carpet.",
    ],
    [
        "She doesn't like to spin wool.",
        "Spinning wool isn't what he likes.",
        "He hates to spin the wool.",
    ],
    [
        "A cat sleeps in a basket of wool.",
        "The cat has found a basket, and sleeps.",
        "In the weaver's basket there is a sleeping cat.",
    ],
    [
        "The machine stopped.",
        "Nothing moves any more.",
        "A broken belt has stopped the machines.",
    ],
]
