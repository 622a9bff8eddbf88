"""Captions of pictures."""

from __future__ import annotations

from seqloom.studies.gates import Gate, at_least, at_most, lead
from seqloom.studies.measures.pictures import majority_caption, nearest_caption, own_and_other_picture
from seqloom.studies.sources.pictures import flickr, scene_pictures
from seqloom.studies.study import Study, Variant

WAYS = {"first state": "captions-start", "first input": "captions-first", "attention": "captions-attention"}
WITHOUT_LEARNING = {"most frequent caption": majority_caption, "caption of the nearest picture": nearest_caption}
SMALL = (
    *("task.source.size=32", "task.source.shift=0", "task.source.mirror=false"),
    *("encoder.size=64", "encoder.patch=2", "encoder.dropout=0.0", "decoder.dropout=0.0"),
    *("objective.label_smoothing=0.0", 'task.metrics=["exact"]', "train.select_by=exact"),
    *("train.tokens=1024", "train.warmup=100"),
)
AGAIN = ("train.epochs=4",)
ONCE = (  # the state must carry everything: it forgets little, and pictures are shifted against learning them by heart
    *("decoder.cell.forget_bias=3.0", "train.learning_rate=1e-3"),
    *("task.source.shift=2", "train.epochs=12"),
)


def looks(way: str) -> Gate:
    """A model that looks at its picture loses much where it is given another one."""
    text = f"{way} caption_bleu, own minus other picture"
    return Gate(text, lambda measured: measured[way]["caption_bleu"] - measured[way]["other_caption_bleu"], ">=", 2)


STUDIES: dict[str, Study] = {
    "scenes": Study(
        "generated pictures of two objects, 32 x 32: captions that are right word for word, of 1,000; other: of "
        "another picture",
        "captions-attention",
        scene_pictures,
        (at_least(95, "exact", "attention"), *(at_most(1, "other_exact", way) for way in WAYS)),
        variants={
            way: Variant((*SMALL, *(AGAIN if way == "attention" else ONCE)), recipe=recipe)
            for way, recipe in WAYS.items()
        },
        measure=own_and_other_picture,
    ),
    "flickr": Study(
        "Flickr8k at 64 x 64 pixels, five references for each of 1,000 test pictures; other: of another picture",
        "captions-attention",
        flickr,
        (
            *map(looks, WAYS),
            *(lead(0, "caption_bleu", way, other) for way in WAYS for other in WITHOUT_LEARNING),
        ),
        "none at 64 pixels; BLEU-4 19.5, soft attention on features of a network trained on ImageNet (Xu et al. 2015)",
        variants={name: Variant(baseline=rule) for name, rule in WITHOUT_LEARNING.items()}
        | {way: Variant(recipe=recipe) for way, recipe in WAYS.items()},
        measure=own_and_other_picture,
    ),
}
