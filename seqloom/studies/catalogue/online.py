"""Models that write while they read."""

from __future__ import annotations

from seqloom.studies.gates import Gate, Measures, at_least, at_most, lead
from seqloom.studies.measures.noisy_channel import noisy_channel
from seqloom.studies.measures.online import beam_and_greedy, by_wait, hard_and_expected, metrics_and_delay
from seqloom.studies.pictures import trade_off
from seqloom.studies.sources.generators import examples_of
from seqloom.studies.sources.pairs import (
    G2P,
    MULTI30K,
    cmudict,
    multi30k,
    sigmorphon,
    swapped,
    targets,
    tenth_of_cmudict,
)
from seqloom.studies.sources.spoken_digits import spoken_digits
from seqloom.studies.study import Study, Variant


def hard_to_expected(measured: Measures) -> float:
    return measured["exact"] - measured["expected_exact"]


TRANSDUCER = "transducer"
GREEDY = "search.beam_size=1"
MONOTONIC = "monotonic attention"
WAITING = "wait-k"


STUDIES: dict[str, Study] = {
    "spoken-digits": Study(
        "Strings of three to five spoken digits (FSDD, takes 0 to 4; wer is digit error) with a beam of 4 and greedy; "
        "all models but the last write while they listen",
        "speech-transducer",
        spoken_digits,
        (
            at_most(6, "wer", TRANSDUCER),
            Gate("wer, transducer minus CTC", lambda m: m[TRANSDUCER]["wer"] - m["CTC"]["wer"], "<=", 2),
            at_most(8, "wer", "Neural Transducer"),
            at_most(0.99, "average_proportion", "Neural Transducer"),
        ),
        "phoneme error on TIMIT: transducer 23.2 (2012) and 17.7 (2013), Neural Transducer 18.2 (Graves 2012; Graves, "
        "Mohamed & Hinton 2013; Jaitly et al. 2016)",
        variants={
            TRANSDUCER: Variant((GREEDY,)),
            "CTC": Variant((GREEDY,), recipe="speech-ctc"),
            "Neural Transducer": Variant((GREEDY,), recipe="speech-blocks"),
            "listen, attend and spell": Variant((GREEDY,), recipe="speech-attention"),
        },
        measure=beam_and_greedy,
    ),
    "g2p-online": Study(
        "Greek letters to phonemes (SIGMORPHON 2020, 3,600 words): monotonic alignments compared with soft attention; "
        "SSNT with a beam of 4, the others by greedy search; WER is 100 - exact",
        "g2p-small",
        sigmorphon("gre"),
        (
            lead(-2, "exact", "SSNT", "soft attention"),
            lead(-2, "exact", MONOTONIC, "soft attention"),
            Gate(
                "exact, monotonic attention: hard minus expected decoding",
                lambda m: m[MONOTONIC]["exact"] - m[MONOTONIC]["expected_exact"],
                ">=",
                -2,
            ),
            Gate(
                "exact, the same difference with noise minus without",
                lambda m: hard_to_expected(m[MONOTONIC]) - hard_to_expected(m["without noise"]),
                ">=",
                0,
            ),
        ),
        variants={
            "soft attention": Variant(),
            "SSNT": Variant(recipe="g2p-ssnt"),
            MONOTONIC: Variant(recipe="g2p-monotonic"),
            "without noise": Variant(("decoder.attention.noise=0.0",), recipe="g2p-monotonic"),
        },
        measure=hard_and_expected,
        seeds=(1, 2),
    ),
    "noisy-channel": Study(
        f"{G2P}; trained on every tenth pair, the language model on the phonemes of all pairs. The direct model with "
        "channel and language model in its beam, weights tuned on validation data",
        "g2p-ssnt",
        tenth_of_cmudict,
        (
            Gate(
                "WER, direct minus channel and language model",
                lambda m: m["direct"]["direct_wer"] - m["direct"]["channel_lm_wer"],
                ">=",
                0,
            ),
            at_least(1, "channel_lm_better", "direct"),  # with every seed
        ),
        variants={  # the direct model is measured with the others, so it comes last
            "language model": Variant(
                ("task.target.units=word", "decoder.layers=1", "train.epochs=6"), "char-lm", targets(cmudict)
            ),
            "channel": Variant(
                (
                    *("task.source.units=word", "task.target.units=char", 'task.metrics=["cer", "exact"]'),
                    *("encoder.bidirectional=false", "train.select_by=loss", "train.decode=500"),
                ),
                data=swapped(tenth_of_cmudict),
            ),
            "direct": Variant(("task.group_references=true", "train.decode=500", "search.symbols_per_state=3")),
        },
        measure=noisy_channel,
        seeds=(1, 2, 3),
    ),
    "delayed-copy": Study(
        "A mark asks for one of the letters before it: stochastic emissions; the least possible delay is 0",
        "delayed-copy",
        examples_of("delayed_copy", 5_000, 1_000),
        (at_least(95, "exact"), at_most(2, "delay")),
        measure=metrics_and_delay,
    ),
    "cipher": Study(
        "A cipher that depends on the next two letters, sources of 15 to 25 letters: written k letters behind, and by "
        "an agent that decides; AP is the average proportion of the source read",
        "cipher",
        examples_of("cipher", 20_000, 500, unseen={"shortest": 15}, shortest=4),
        (
            at_least(98, "exact, k = 3", WAITING),
            at_most(0.65, "AP, k = 3", WAITING),
            Gate(
                "exact, k = 5 minus k = 1", lambda m: m[WAITING]["exact, k = 5"] - m[WAITING]["exact, k = 1"], ">=", 50
            ),
            at_least(98, "exact", "agent"),
            at_most(0.8, "AP", "agent", stricter=0.65),
        ),
        variants={WAITING: Variant(), "agent": Variant(recipe="cipher-agent", init=WAITING)},
        measure=by_wait("exact", 1, 2, 3, 4, 5, 7, 99),
        picture=trade_off,
    ),
    "simultaneous": Study(
        f"{MULTI30K}, written k byte-pair pieces behind; one LSTM for all k, greedy; AP is the average proportion "
        "of the source read",
        "multi30k-online",
        multi30k,
        (Gate("bleu, k = 9 minus k = 1", lambda m: m[""]["bleu, k = 9"] - m[""]["bleu, k = 1"], ">=", 0),),
        measure=by_wait("bleu", 1, 3, 5, 7, 9, 99),
        picture=trade_off,
    ),
}
