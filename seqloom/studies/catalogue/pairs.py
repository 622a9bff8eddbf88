"""Pairs: words, dates and sentences, with and without attention, and by search."""

from __future__ import annotations

from seqloom.studies.gates import Gate, at_least, at_most, lead
from seqloom.studies.measures.pairs import by_length, by_search
from seqloom.studies.sources.generators import dates
from seqloom.studies.sources.pairs import G2P, MULTI30K, cmudict, multi30k, scan
from seqloom.studies.study import Study, Variant


def shorter(first: str, second: str) -> Gate:
    """Outputs of one search are not longer than those of another."""
    text = f"length, {first} minus {second}"
    return Gate(text, lambda m: m[""][f"{first}_length"] - m[""][f"{second}_length"], "<=", 0.0)


STUDIES: dict[str, Study] = {
    "dates": Study(
        "Dates as people write them, in twelve languages, to ISO 8601 (test strings are unseen, their days may not be)",
        "dates",
        dates,
        (at_least(99, "exact"),),
    ),
    "g2p-lstm": Study(
        G2P,
        "g2p-lstm",
        cmudict,
        (at_least(70, "exact"), at_most(7.5, "per")),
        "exact 76.45 (bidirectional LSTM with given alignments, Yao & Zweig 2015, nearly the same split)",
    ),
    "g2p-transformer": Study(
        G2P,
        "g2p-transformer",
        cmudict,
        (at_least(70, "exact"), at_most(7.5, "per")),
        "exact 79.8 (Transformer 2 x 256, table of the g2p-seq2seq project, nearly the same split)",
        variants={"": Variant(("train.tokens=1024", "train.epochs=12"))},
    ),
    "multi30k-transformer": Study(
        MULTI30K,
        "multi30k-transformer",
        multi30k,
        (at_least(32, "bleu"),),
        "36.5 for German to English, tokenised and lower-cased (Transformer of a tutorial series)",
    ),
    "multi30k-lstm": Study(
        MULTI30K,
        "multi30k-lstm",
        multi30k,
        (at_least(28, "bleu"),),
        "about 28 for German to English, tokenised and lower-cased (attention RNN of a tutorial series)",
    ),
    "multi30k-attention": Study(
        f"{MULTI30K}: an LSTM with attention and one without, with as many parameters, by source length in pieces",
        "multi30k-lstm",
        multi30k,
        (lead(4, "bleu", "attention", "none"),),
        variants={
            "attention": Variant(),
            "none": Variant(
                (
                    "decoder.attention=none",
                    "decoder.embedding_size=384",
                    "decoder.size=384",
                    "encoder.size=320",
                )
            ),
        },
        measure=by_length(11, 16, 21),
    ),
    "decoding": Study(
        f"{MULTI30K}: the model of multi30k-lstm with different searches",
        "multi30k-lstm",
        multi30k,
        (
            Gate("bleu, beam_5 minus greedy", lambda m: m[""]["beam_5_bleu"] - m[""]["greedy_bleu"], ">=", 0.0),
            shorter("beam_20_raw", "beam_5_raw"),
            Gate(
                "length, beam_20 with normalisation minus without",
                lambda m: m[""]["beam_20_length"] - m[""]["beam_20_raw_length"],
                ">=",
                0.01,
            ),
        ),
        measure=by_search,
        runs="multi30k-lstm",
    ),
    "gnmt": Study(
        f"{MULTI30K}: a small GNMT",
        "gnmt",
        multi30k,
        (at_least(28, "bleu"),),
        variants={"": Variant(("train.tokens=1024",))},
    ),
    "gnmt-refined": Study(
        f"{MULTI30K}: the model of gnmt refined for GLEU, and trained by likelihood for as many updates",
        "gnmt-refined",
        multi30k,
        (lead(0, "bleu", "refined", "likelihood further"),),
        "English to French 38.95 and 39.92, English to German 24.67 and 24.60 BLEU, before and after (Wu et al. 2016)",
        variants={
            "likelihood further": Variant(("objective.type=cross_entropy",), init="gnmt/"),
            "refined": Variant(init="gnmt/"),
        },
    ),
    "dates-attention": Study(
        "Dates with and without attention, by source length",
        "dates",
        dates,
        (at_least(99, "exact", "attention"),),
        variants={"attention": Variant(), "none": Variant(("decoder.attention=none",))},
        measure=by_length(15, 25, 35),
    ),
    "scan": Study(
        "SCAN, commands to actions: seen lengths, longer ones, and a new verb in known frames",
        "scan-lstm",
        scan("simple"),
        (
            at_least(99, "exact", "lstm simple"),
            at_most(21, "exact", "lstm length"),
            at_most(5, "exact", "lstm jump"),
            at_least(99, "exact", "transformer simple"),
            at_most(21, "exact", "transformer length"),
            at_most(5, "exact", "transformer jump"),
        ),
        variants={
            f"{kind} {split.removeprefix('addprim_')}": Variant((), f"scan-{kind}", scan(split))
            for kind in ("lstm", "transformer")
            for split in ("simple", "length", "addprim_jump")
        }
        | {
            f"conv-s2s {split.removeprefix('addprim_')}": Variant(
                ("train.threads=1", "train.epochs=40"), "scan-conv-s2s", scan(split), minutes=8
            )
            for split in ("simple", "addprim_jump")
        },
    ),
}
