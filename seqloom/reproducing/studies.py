"""Every study by name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from seqloom.reproducing.measures import (
    also_published,
    answers_drawn,
    beam_and_greedy,
    beside_neighbours,
    by_beam,
    by_difficulty,
    by_length,
    by_number,
    by_points,
    by_search,
    by_wait,
    copied,
    counted,
    delayed,
    errors_of_babi,
    hard_and_expected,
    nats_and_steps,
    next_symbol,
    noisy_channel,
    steps_over_text,
    valid_and_test,
)
from seqloom.reproducing.pictures import (
    difficulties,
    distributions,
    errors_by_task,
    over_the_truth,
    thoughts,
    trade_off,
)
from seqloom.reproducing.sources import (
    babi,
    cloze,
    cmudict,
    dates,
    django,
    made,
    multi30k,
    penn_treebank,
    scan,
    shuffled_captions,
    sigmorphon,
    spoken_digits,
    swapped,
    targets,
    tatoeba_copies,
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

TASKS, SOLVED = range(1, 21), (1, 11, 12, 13, 15, 20)  # of bAbI; those that must all but be solved
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


POINTERS = "Vinyals et al. 2015, 256 to 512 units, a million examples"
WORDS = (
    *("task.target.type=text", "task.target.units=word", 'task.valid=""'),
    *("decoder.type=recurrent", "decoder.embedding_size=64", "decoder.size=128"),
)
ATTENDING = ("decoder.attention.type=additive", "decoder.attention.size=128")


def tours(number: int, train: int) -> Any:
    return made("tour", train, 10_000, called=f"tour-{number}", shortest=number, longest=number)


THINKING, ONE_STEP = "ponder 0.0001", "one step"
PRICES = ("0.03", "0.01", "0.003", "0.001")  # of a step, beside that of the recipe


def thought_longer(measured: Measured) -> float:
    """The least that a lower price of a step adds to the steps, over all prices."""
    steps = [measured[f"ponder {price}"]["steps"] for price in (*PRICES, "0.0001")]
    return min(after - before for before, after in pairwise(steps))


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
    "babi": Study(
        "bAbI, 1,000 questions a task, a memory network of three hops for each; of two runs the one with the lower "
        "loss on the training set; error in %",
        "babi",
        babi(1),
        (
            Gate("error, mean of 20 tasks", lambda m: sum(m[f"task {task}"]["error"] for task in TASKS) / 20, "<=", 20),
            Gate(
                f"error, worst of tasks {', '.join(map(str, SOLVED))}",
                lambda m: max(m[f"task {task}"]["error"] for task in SOLVED),
                "<=",
                3,
            ),
            Gate(
                "error, task 2 without ages less with",
                lambda m: m["task 2 without ages"]["error"] - m["task 2"]["error"],
                ">=",
                20,
            ),
        ),
        "the column at the right, mean 13.8: best of several runs by training error (Sukhbaatar et al. 2015, table 1)",
        variants={
            **{f"task {task}": Variant(data=babi(task)) for task in TASKS},
            "task 2 without ages": Variant(("encoder.ages=0",), data=babi(2)),
        },
        measure=errors_of_babi,
        seeds=(1, 2),
        picture=errors_by_task,
        choose="train_loss",
    ),
    "cloze": Study(
        "bAbI's questions with one (1,000, named 10 times) and two supporting facts (10,000, twice), people, places "
        "and things renamed in every story: the attention-sum reader, and the same by the most that an occurrence gets",
        "cloze",
        cloze(1, 10),
        (
            at_least(95, "exact", "one fact, sum"),
            at_least(60, "exact", "two facts, sum"),
            ahead(0, "exact", "two facts, sum", "two facts, max"),
        ),
        "none on these; CNN 69.5, CBT-NE 68.6, CBT-CN 63.4, single models (Kadlec et al. 2016)",
        variants={
            f"{facts}, {pooling}": Variant((f"decoder.pooling={pooling}",), data=data)
            for facts, data in (("one fact", cloze(1, 10)), ("two facts", cloze(2, 2, "en-10k")))
            for pooling in ("sum", "max")
        },
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
    "copying": Study(
        "Tatoeba English to French, 2,000 words a side, every fifth pair with words to copy that they lack; oov_recall "
        "is of these. unknown: such words are written as unknown; replaced: as the word most looked at",
        "pointer-generator",
        tatoeba_copies,
        (
            at_least(70, "oov_recall", "pointer-generator"),
            at_least(70, "oov_recall", "switch"),
            at_least(1, "better", "pointer-generator"),  # with every seed
            at_least(1, "better", "switch"),
        ),
        "BLEU 20.19 to 23.76 by pointing (Europarl English to French, Gulcehre et al. 2016)",
        variants={  # those that copy are measured beside the plain one
            "plain": Variant(recipe="rare-words"),
            "switch": Variant(("decoder.mixture=switch",)),
            "pointer-generator": Variant(),
        },
        measure=copied,
        seeds=(1, 2, 3),
    ),
    "django": Study(
        "English to lines of Python (Django, the last 1,805 lines), by words: with copying and without",
        "django",
        django,
        (
            at_least(35, "exact", "copying"),
            at_least(90, "parsable", "copying"),
            ahead(0, "exact", "copying", "plain"),
        ),
        "exact 45.1 (neural translation), 62.3 (latent predictor networks, Ling et al. 2016), 71.6 (syntactic neural "
        "model, Yin & Neubig 2017)",
        variants={"copying": Variant(), "plain": Variant(recipe="django-plain")},
    ),
    "sentinel": Study(
        "Penn Treebank by words, three epochs: a pointer sentinel around an LSTM, and the LSTM alone",
        "word-sentinel",
        penn_treebank,
        (
            Gate(
                "test perplexity, sentinel to LSTM",
                lambda m: m["sentinel"]["test_perplexity"] / m["LSTM"]["test_perplexity"],
                "<=",
                0.97,
            ),
        ),
        "valid 72.4, test 70.9 with a sentinel, 86.2, 82.7 without (medium LSTM of Zaremba et al.; Merity et al. 2016)",
        variants={"LSTM": Variant(("train.epochs=3",), recipe="word-lstm"), "sentinel": Variant()},
        measure=valid_and_test,
    ),
    "hull": Study(
        "Convex hulls of 5 points, 10,000 drawn ones and the published test file: a pointer network, and LSTMs that "
        "write places as words; area 0: more than 1 % are no simple polygon",
        "hull",
        made("hull", 400_000, 10_000, called="hull-5", shortest=5, longest=5),
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
        measure=also_published,
        picture=over_the_truth,
        shown=answers_drawn("hull"),
    ),
    "hull-lengths": Study(
        "Convex hulls: one pointer network, trained on 5 to 50 points, asked for up to 500; 500 examples each",
        "hull",
        made("hull", 250_000, 1_000, called="hull-lengths", shortest=5, longest=50),
        (at_least(98, "area, n = 50"),),
        f"exact and area: 92.0, 99.6 of 5 points, 50.3, 99.9 of 100, 1.3, 99.2 of 500 ({POINTERS}); 85.4, 99.0, 69.7, "
        "99.6, 30.5, 99.8 of 5, 10, 50 (a replication)",
        variants={"": Variant(("train.tokens=4096", "train.epochs=2"))},
        measure=by_points("hull", 500, 5, 10, 50, 100, 200, 500),
        picture=over_the_truth,
        shown=answers_drawn("hull", 50, 100, 500),
    ),
    "tour": Study(
        "Short tours of 5 and of 10 points, learned from the shortest; a beam of 10 among tours only",
        "tour",
        tours(5, 200_000),
        (
            at_most(2.16, "tour", "n = 5"),
            at_most(3.00, "tour", "n = 10"),
            Gate(
                "tour, n = 10, nearest neighbour less model",
                lambda m: m["n = 10"]["nearest_neighbour"] - m["n = 10"]["tour"],
                ">=",
                0,
            ),
        ),
        f"2.12 of 5 points (shortest 2.12), 2.88 of 10 (2.87) ({POINTERS})",
        variants={"n = 5": Variant(), "n = 10": Variant(data=tours(10, 200_000))},
        measure=beside_neighbours,
        picture=over_the_truth,
        shown=answers_drawn("tour"),
    ),
    "delaunay": Study(
        "Delaunay triangulations of 5 points: all triangles right, and the part of triangles that were found",
        "delaunay",
        made("delaunay", 300_000, 10_000),
        (at_least(65, "triangles"), at_least(88, "triangle_coverage")),
        f"80.7, coverage 93.0 ({POINTERS})",
        picture=over_the_truth,
        shown=answers_drawn("delaunay"),
    ),
    "sorting": Study(
        "Five numbers sorted, read as a set that is thought over in P steps, with a glimpse; outputs may be anything",
        "sorting",
        made("sorting", 150_000, 10_000),
        (at_least(92, "exact", "P = 10"), ahead(3, "exact", "P = 10", "P = 0")),
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
    "parity": Study(
        "Is the number of ones in a vector of 16 odd? A GRU that decides how often it steps, and one that steps once; "
        "other prices of a step begin where the first ends. By how many components are not 0",
        "parity",
        made("parity", 200_000, 4_000, unseen={"easy": False}, easy=True),
        (
            at_most(5, "error", THINKING),
            at_least(40, "error", ONE_STEP),
            Gate(
                "steps at a price of 0.003, 13 to 16 components before 1 to 4",
                lambda m: m["ponder 0.003"]["steps, 13 to 16"] - m["ponder 0.003"]["steps, 1 to 4"],
                ">=",
                0,
            ),
            Gate("steps, each price before the next higher one", thought_longer, ">=", 0),
        ),
        "error near 0 with small prices, vectors of 64 (Graves 2016, section 3.1)",
        variants={
            THINKING: Variant(),
            ONE_STEP: Variant(("encoder.cell.most=1",)),
            **{
                f"ponder {price}": Variant(
                    (f"objective.costs.ponder={price}", "train.steps=4000", "train.learning_rate=1e-3"), init=THINKING
                )
                for price in PRICES
            },
        },
        measure=by_difficulty(5, 9, 13),
        picture=difficulties,
    ),
    "pondering": Study(
        f"{SHAKESPEARE}: an LSTM that decides how often it steps at each character, and one that steps once",
        "text-adaptive",
        tiny_shakespeare,
        (at_most(1.65, "nats_per_token", "adaptive"), at_least(1.5, "steps", "adaptive")),
        variants={
            "adaptive": Variant(),
            ONE_STEP: Variant(("decoder.layers=1",), recipe="text-lstm"),
        },
        measure=nats_and_steps,
        picture=thoughts,
        shown=steps_over_text,
    ),
}
