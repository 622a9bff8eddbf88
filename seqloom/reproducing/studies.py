"""Every study by name."""

from __future__ import annotations

from seqloom.reproducing.measures import (
    beam_and_greedy,
    by_beam,
    by_length,
    by_number,
    by_search,
    by_wait,
    counted,
    delayed,
    hard_and_expected,
    next_symbol,
    noisy_channel,
    valid_and_test,
)
from seqloom.reproducing.pictures import distributions, trade_off
from seqloom.reproducing.sources import (
    cmudict,
    dates,
    made,
    multi30k,
    penn_treebank,
    scan,
    shuffled_captions,
    sigmorphon,
    spoken_digits,
    swapped,
    targets,
    tenth_of_cmudict,
    tiny_shakespeare,
    two_modes,
)
from seqloom.reproducing.study import Gate, Measured, Measures, Study, Variant, ahead, at_least, at_most

CELLS = {
    "tanh": ("elman",),
    "lstm": ("lstm", "forget_bias=0.0"),
    "lstm-b": ("lstm", "forget_bias=1.0"),
    "lstm-f": ("lstm", 'without="forget"'),
    "gru": ("gru",),
    "mut1": ("mut", "variant=1"),
    "mut2": ("mut", "variant=2"),
    "mut3": ("mut", "variant=3"),
}


def cells(*names: str, sides: tuple[str, ...] = ("encoder",)) -> dict[str, Variant]:
    """A variant a cell, the same on all sides that have one."""
    chosen = {name: CELLS[name] for name in names}
    return {
        name: Variant(
            tuple(
                f"{side}.cell.{key}"
                for side in sides
                for key in (f"type={kind}", *options)
            )
        )
        for name, (kind, *options) in chosen.items()
    }  # fmt: skip


def worst_gap(metric: str, better: tuple[str, ...], worse: tuple[str, ...], bound: float) -> Gate:
    """The least of some variants leads the best of others by so much."""

    def gap(measured: Measured) -> float:
        return min(measured[name][metric] for name in better) - max(measured[name][metric] for name in worse)

    return Gate(f"{metric}, {', '.join(better)} before {', '.join(worse)}", gap, ">=", bound)


def sum_of(measured: Measures, *counts: int) -> float:
    return sum(measured[f"{count} b"] for count in counts)


def hard_to_expected(measured: Measures) -> float:
    return measured["exact"] - measured["expected_exact"]


def shorter(first: str, second: str) -> Gate:
    """Outputs of one search are not longer than those of another."""
    text = f"length, {first} to {second}"
    return Gate(text, lambda m: m[""][f"{first}_length"] - m[""][f"{second}_length"], "<=", 0.0)


GATED = ("lstm-b", "gru", "mut1", "mut2", "mut3")
G2P = "CMUdict letters to phonemes; WER is 100 - exact, any listed pronunciation counts"
MULTI30K = "Multi30k English to German, test 2016"
SHAKESPEARE = "Tiny Shakespeare by characters, the last tenth, which also chose the checkpoint"
REVERSED = "encoder.reverse=true"

TRANSDUCER = "transducer"
GREEDY = "search.beam_size=1"
MONOTONIC = "monotonic attention"
WAITING = "wait-k"
LIKELY = "cross-entropy"
GREEK = "Greek letters to phonemes (SIGMORPHON 2020, 3,600 words), by the likeliest symbols"
FURTHER = ("train.epochs=6", "train.learning_rate=3e-4", "train.warmup=20")  # from a run that is trained


def objective(kind: str, *settings: str) -> tuple[str, ...]:
    return (f"objective.type={kind}", *(f"objective.{each}" for each in settings))


def further(kind: str, *settings: str) -> Variant:
    """From the run of cross-entropy, with another objective."""
    return Variant((*objective(kind, *settings), *FURTHER), init=LIKELY)


def captions(kind: str, *settings: str) -> Variant:
    """The same of captions, where a search ranks as the objective does."""
    ranked = "search.rank_by=last" if kind == "margin" else "search.rank_by=sum"
    bag = f"task.bag={'true' if 'constrained=true' in settings else 'false'}"
    longer = ("train.epochs=8", "train.tokens=512", "train.learning_rate=1e-3", "train.warmup=20", "train.clip=5.0")
    return Variant((*objective(kind, *settings), ranked, bag, *longer), init=LIKELY)


STUDIES: dict[str, Study] = {
    "dates": Study(
        "People's dates in twelve languages to ISO 8601 (test strings are unseen, their days may be known)",
        "dates",
        dates,
        (at_least(99, "exact"),),
    ),
    "g2p-lstm": Study(
        G2P,
        "g2p-lstm",
        cmudict,
        (at_least(70, "exact"), at_most(7.5, "per")),
        "exact 76.45 (bidirectional LSTM that is given alignments, Yao & Zweig 2015, nearly the same split)",
    ),
    "g2p-transformer": Study(
        G2P,
        "g2p-transformer",
        cmudict,
        (at_least(70, "exact"), at_most(7.5, "per")),
        "exact 79.8 (Transformer 2 x 256, table of the g2p-seq2seq project, nearly the same split)",
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
        f"{MULTI30K}: an LSTM with attention and one without, of as many parameters, by length of the source in pieces",
        "multi30k-lstm",
        multi30k,
        (ahead(4, "bleu", "attention", "none"),),
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
        f"{MULTI30K}: what search makes of the model of multi30k-lstm",
        "multi30k-lstm",
        multi30k,
        (
            Gate("bleu, beam_5 before greedy", lambda m: m[""]["beam_5_bleu"] - m[""]["greedy_bleu"], ">=", 0.0),
            shorter("beam_20_raw", "beam_5_raw"),
            Gate(
                "length of beam_20 with normalisation less that without",
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
    ),
    "shakespeare-lstm": Study(
        SHAKESPEARE,
        "text-lstm",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token"),),
        "1.558 (6-gram, Kneser-Ney); 1.4697 (nanoGPT on a GPU)",
    ),
    "shakespeare-gpt": Study(
        SHAKESPEARE,
        "text-gpt",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token"),),
        "1.558 (6-gram, Kneser-Ney); 1.88 (nanoGPT's demo on a processor), 1.4697 (on a GPU)",
    ),
    "ptb-lstm": Study(
        "Penn Treebank by words",
        "word-lstm",
        penn_treebank,
        (at_most(140, "valid_perplexity"), at_most(143.7, "test_perplexity")),
        "valid 151.5, test 143.7 (5-gram, Kneser-Ney); 121.39, 115.91 after 13 epochs (small model of Zaremba et al.)",
        measure=valid_and_test,
    ),
    "adding": Study(
        "The adding problem over 100 steps, 64 units (who always answers 1 has an error of 0.167)",
        "adding",
        made("adding", 40_000, 2_000, length=100),
        (*(at_most(0.01, "mse", cell) for cell in ("lstm", *GATED)), at_least(0.1, "mse", "tanh")),
        variants=cells("tanh", "lstm", *GATED),
    ),
    "arithmetic": Study(
        "Sums and differences among letters that mean nothing: which cell finds the next digit",
        "arithmetic",
        made("arithmetic", 100_000, 2_000),
        (
            worst_gap("accuracy", ("lstm-b", "gru", "mut1"), ("tanh", "lstm-f"), 30),
            ahead(0, "accuracy", "lstm-b", "lstm"),
        ),
        "accuracy tanh 29.5, LSTM-f 29.3, LSTM 89.2, LSTM-b 90.2, GRU 89.6, MUT1 92.1 (Jozefowicz et al. 2015, "
        "each the best of many trials)",
        variants=cells("tanh", "lstm-f", "lstm", "lstm-b", "gru", "mut1", sides=("encoder", "decoder")),
        measure=next_symbol,
    ),
    "counting": Study(
        "a^n b^n: learned for n up to 50, asked for n from 51 to 100",
        "counting",
        made("counting", 10_000, 200, {"shortest": 51, "longest": 100}, shortest=1, longest=50),
        (at_least(90, "accepted", "lstm-b"), at_most(30, "accepted", "gru")),
        variants=cells("lstm-b", "gru", sides=("decoder",)),
        measure=counted,
    ),
    "addition": Study(
        "Sums of two numbers of up to three digits, an LSTM without attention that is given h_T; the last is plain but "
        "given the cells too, and a forget bias of 1",
        "addition",
        made("addition", 50_000, 1_000),
        (
            at_least(5, "exact", "plain"),
            at_most(15, "exact", "plain"),
            at_least(25, "exact", "reversed"),
            at_most(65, "exact", "reversed"),
            at_least(95, "exact", "reversed and fed"),
        ),
        "7.8, 41 and 96.1 % (the same three in NumPy, 25 epochs)",
        variants={
            "plain": Variant(),
            "reversed": Variant((REVERSED,)),
            "reversed and fed": Variant((REVERSED, "decoder.feed_context=true", "decoder.deep_output=true")),
            "plain with cells": Variant(
                ("decoder.bridge=copy", "encoder.cell.forget_bias=1.0", "decoder.cell.forget_bias=1.0")
            ),
        },
    ),
    "dates-attention": Study(
        "Dates with attention and without, by length of the source",
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
        },
    ),
    "objectives": Study(
        f"{GREEK}: objectives on one LSTM. Those from the seventh on begin where the first ends",
        "g2p-small",
        sigmorphon("gre"),
        published="XENT, DAD, E2E, MIXER: 13.01, 12.18, 12.78, 16.22 ROUGE-2 (summaries), 17.74, 20.12, 17.77, 20.73 "
        "BLEU (translation), 27.8, 28.16, 26.42, 29.16 BLEU (captions), all greedy (Ranzato et al. 2016)",
        variants={
            LIKELY: Variant(),
            "scheduled sampling": Variant(objective("scheduled_sampling", "rate=20.0")),
            "DAD": Variant(objective("dad")),
            "E2E": Variant(objective("end_to_end", "wait=0.3", "longest=20")),
            "RAML, Hamming": Variant(objective("raml")),
            "RAML, edits": Variant(objective("raml", "distance=edit")),
            "cross-entropy further": further("cross_entropy"),
            "expected reward": further("expected_reward"),
            "expected reward, greedy baseline": further("expected_reward", "baseline=greedy"),
            "expected reward, learned baseline": further("expected_reward", "baseline=learned"),
            "expected reward and likelihood": further("expected_reward", "likelihood=0.017"),
            "minimum risk": further("minimum_risk", "sharpness=0.05"),
            "MIXER": further("mixer", "longest=20"),
        },
        seeds=(1, 2, 3),
    ),
    "reordering": Study(
        "Words of English captions of at most 8 words put in order (bag: of these words alone), an LSTM; beam-search "
        "optimisation ranks by the last score",
        "reordering",
        shuffled_captions(8),
        (
            ahead(1, "bleu_5", "BSO", "cross-entropy further"),
            ahead(1, "bleu_1", "BSO", "cross-entropy further"),
            Gate(
                "BLEU, beam of 5, constrained BSO within bags before BSO without",
                lambda m: m["constrained BSO"]["bag_bleu_5"] - m["BSO"]["bleu_5"],
                ">=",
                0.0,
            ),
        ),
        "seq2seq 25.2, 29.8, 31.0, BSO 28.0, 33.2, 34.3, constrained 28.6, 34.3, 34.5 BLEU with beams of 1, 5, 10 "
        "(Penn Treebank, Wiseman & Rush 2016)",
        variants={
            LIKELY: Variant(("task.bag=false",)),
            "cross-entropy further": captions("cross_entropy"),
            "BSO": captions("margin"),
            "BSO, cost of BLEU": captions("margin", "cost=bleu"),
            "constrained BSO": captions("margin", "constrained=true"),
        },
        measure=by_beam,
        seeds=(1, 2, 3),
    ),
    "from-scratch": Study(
        f"{GREEK}: expected reward from scratch, and MIXER, which begins with cross-entropy",
        "g2p-mixer",
        sigmorphon("gre"),
        (ahead(50, "exact", "MIXER", "expected reward"),),
        variants={"MIXER": Variant(), "expected reward": Variant(objective("expected_reward"))},
    ),
    "modes": Study(
        "One source with two targets, the first in 60 % of the examples: what each objective makes likely",
        "modes",
        two_modes,
        (
            Gate("RAML, the lesser mode and its neighbours", lambda m: sum_of(m["RAML"], 5, 6), ">=", 0.25),
            Gate("expected reward, the same", lambda m: sum_of(m["expected reward"], 5, 6), "<=", 0.01),
        ),
        variants={
            "RAML": Variant(),
            LIKELY: Variant(objective("cross_entropy")),
            "expected reward": Variant(
                (*objective("expected_reward", "reward=exact"), "train.learning_rate=2e-3"), init=LIKELY
            ),
        },
        measure=by_number,
        picture=distributions,
    ),
    "spoken-digits": Study(
        "Strings of three to five spoken digits (FSDD, takes 0 to 4; wer is digit error): all but the last write while "
        "they listen; by a beam of 4, and greedy",
        "speech-transducer",
        spoken_digits,
        (
            at_most(6, "wer", TRANSDUCER),
            Gate("wer, transducer to CTC", lambda m: m[TRANSDUCER]["wer"] - m["CTC"]["wer"], "<=", 2),
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
        "Greek letters to phonemes (SIGMORPHON 2020, 3,600 words): alignments that never go back, beside soft "
        "attention; SSNT by a beam of 4, the others by the likeliest symbols; WER is 100 - exact",
        "g2p-small",
        sigmorphon("gre"),
        (
            ahead(-2, "exact", "SSNT", "soft attention"),
            ahead(-2, "exact", MONOTONIC, "soft attention"),
            Gate(
                "exact, monotonic attention: hard to expected decoding",
                lambda m: m[MONOTONIC]["exact"] - m[MONOTONIC]["expected_exact"],
                ">=",
                -2,
            ),
            Gate(
                "exact, the same gap with noise before that without",
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
        f"{G2P}; every tenth pair, and the phonemes of all pairs for the language model. The direct model with both in "
        "its beam, weights tuned on validation data",
        "g2p-ssnt",
        tenth_of_cmudict,
        (
            Gate(
                "WER, direct less channel and language model",
                lambda m: m["direct"]["direct_wer"] - m["direct"]["channel_lm_wer"],
                ">=",
                0,
            ),
            at_least(1, "channel_lm_better", "direct"),  # with every seed
        ),
        variants={  # the direct model, measured with the others, comes last
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
        "Letters go by, and a mark asks for one of them: stochastic emissions; the least delay possible is 0",
        "delayed-copy",
        made("delayed_copy", 5_000, 1_000),
        (at_least(95, "exact"), at_most(2, "delay")),
        measure=delayed,
    ),
    "cipher": Study(
        "A cipher that looks two letters ahead, sources of 15 to 25 letters: k letters behind, and an agent that "
        "decides; AP is the average proportion of the source that had been read",
        "cipher",
        made("cipher", 20_000, 500, unseen={"shortest": 15}, shortest=4),
        (
            at_least(98, "exact, k = 3", WAITING),
            at_most(0.65, "AP, k = 3", WAITING),
            Gate(
                "exact, k = 5 before k = 1", lambda m: m[WAITING]["exact, k = 5"] - m[WAITING]["exact, k = 1"], ">=", 50
            ),
            at_least(98, "exact", "agent"),
            at_most(0.8, "AP", "agent"),
        ),
        variants={WAITING: Variant(), "agent": Variant(recipe="cipher-agent", init=WAITING)},
        measure=by_wait("exact", 1, 2, 3, 4, 5, 7, 99),
        picture=trade_off,
    ),
    "simultaneous": Study(
        f"{MULTI30K}, written k byte-pair pieces behind; one LSTM for all k, greedy; AP is the average proportion "
        "of the source that had been read",
        "multi30k-online",
        multi30k,
        (Gate("bleu, k = 9 before k = 1", lambda m: m[""]["bleu, k = 9"] - m[""]["bleu, k = 1"], ">=", 0),),
        measure=by_wait("bleu", 1, 3, 5, 7, 9, 99),
        picture=trade_off,
    ),
}
