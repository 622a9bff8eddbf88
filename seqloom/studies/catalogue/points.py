"""Pointer networks: outputs that are places of their source."""

from __future__ import annotations

from typing import Any

from seqloom.studies.gates import Gate, at_least, at_most, lead
from seqloom.studies.measures.points import (
    beside_nearest_neighbour,
    by_points,
    example_answers,
    with_published_file,
)
from seqloom.studies.pictures import over_the_truth
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.study import Study, Variant

POINTERS = "Vinyals et al. 2015, 256 to 512 units, a million examples"
WORDS = (
    *("task.target.type=text", "task.target.units=word", 'task.valid=""'),
    *("decoder.type=recurrent", "decoder.embedding_size=64", "decoder.size=128"),
)
ATTENDING = ("decoder.attention.type=additive", "decoder.attention.size=128")


def tours(number: int, train: int) -> Any:
    return examples_of("tour", train, 10_000, called=f"tour-{number}", shortest=number, longest=number)


STUDIES: dict[str, Study] = {
    "hull": Study(
        "Convex hulls of 5 points, on 10,000 random examples and the published test file: a pointer network, and LSTMs "
        "that write places as words; area 0: more than 1 % are no simple polygon",
        "hull",
        examples_of("hull", 400_000, 10_000, called="hull-5", shortest=5, longest=5),
        (
            at_least(85, "hull", "pointer"),
            at_least(98, "area", "pointer"),
            at_least(85, "published_hull", "pointer"),
            at_least(98, "published_area", "pointer"),
        ),
        "exact and area: LSTM 87.7, 99.6 of 5 points, 1.9 and FAIL of 50; with attention 38.9, 99.7 of 50; pointer "
        f"network 92.0, 99.6 of 5, 72.6, 99.9 of 50 ({POINTERS})",
        variants={
            "pointer": Variant(),
            "LSTM": Variant(WORDS),
            "LSTM with attention": Variant((*WORDS, *ATTENDING)),
        },
        measure=with_published_file,
        picture=over_the_truth,
        shown=example_answers("hull"),
    ),
    "hull-lengths": Study(
        "Convex hulls: one pointer network, trained on 5 to 50 points and tested on up to 500; 500 examples each",
        "hull",
        examples_of("hull", 250_000, 1_000, called="hull-lengths", shortest=5, longest=50),
        (at_least(98, "area, n = 50"),),
        f"exact and area: 92.0, 99.6 of 5 points, 50.3, 99.9 of 100, 1.3, 99.2 of 500 ({POINTERS}); 85.4, 99.0, 69.7, "
        "99.6, 30.5, 99.8 of 5, 10, 50 (a replication)",
        variants={"": Variant(("train.tokens=4096", "train.epochs=2"))},
        measure=by_points("hull", 500, 5, 10, 50, 100, 200, 500),
        picture=over_the_truth,
        shown=example_answers("hull", 50, 100, 500),
    ),
    "tour": Study(
        "Short tours of 5 and 10 points, trained on optimal tours; a beam of 10, constrained to tours",
        "tour",
        tours(5, 200_000),
        (
            at_most(2.16, "tour", "n = 5"),
            at_most(3.00, "tour", "n = 10"),
            Gate(
                "tour, n = 10, nearest neighbour minus model",
                lambda m: m["n = 10"]["nearest_neighbour"] - m["n = 10"]["tour"],
                ">=",
                0,
            ),
        ),
        f"2.12 of 5 points (shortest 2.12), 2.88 of 10 (2.87) ({POINTERS})",
        variants={"n = 5": Variant(), "n = 10": Variant(data=tours(10, 200_000))},
        measure=beside_nearest_neighbour,
        picture=over_the_truth,
        shown=example_answers("tour"),
    ),
    "delaunay": Study(
        "Delaunay triangulations of 5 points: exact ones, and the share of triangles found",
        "delaunay",
        examples_of("delaunay", 300_000, 10_000),
        (at_least(65, "triangles"), at_least(88, "triangle_coverage")),
        f"80.7, coverage 93.0 ({POINTERS})",
        variants={"": Variant(("train.tokens=1024", "train.epochs=13"))},
        picture=over_the_truth,
        shown=example_answers("delaunay"),
    ),
    "sorting": Study(
        "Five numbers sorted, read as a set in P processing steps, with a glimpse; outputs are not constrained",
        "sorting",
        examples_of("sorting", 150_000, 10_000),
        (at_least(92, "exact", "P = 10"), lead(3, "exact", "P = 10", "P = 0")),
        "pointer network 81, with a glimpse 90; with a glimpse, P = 1 92, P = 10 94 (Vinyals, Bengio & Kudlur 2016)",
        variants={
            "pointer": Variant(
                (
                    *('task.valid=""', "decoder.glimpses=0"),
                    *("encoder.type=recurrent", "encoder.embedding_size=64", "encoder.size=128"),
                )
            ),
            **{f"P = {steps}": Variant(('task.valid=""', f"encoder.steps={steps}")) for steps in (0, 1, 5, 10)},
            "P = 5, no glimpse": Variant(('task.valid=""', "decoder.glimpses=0")),
        },
    ),
}
