"""Objectives compared with cross-entropy."""

from __future__ import annotations

from seqloom.studies.gates import Gate, Measures, lead
from seqloom.studies.measures.objectives import by_beam, mode_probabilities
from seqloom.studies.pictures import distributions
from seqloom.studies.sources.objectives import shuffled_captions, two_modes
from seqloom.studies.sources.pairs import sigmorphon
from seqloom.studies.study import Study, Variant


def sum_of(measured: Measures, *counts: int) -> float:
    return sum(measured[f"{count} b"] for count in counts)


LIKELY = "cross-entropy"
GREEK = "Greek letters to phonemes (SIGMORPHON 2020, 3,600 words), greedy search"
FURTHER = ("train.epochs=6", "train.learning_rate=3e-4", "train.warmup=20")  # of a run that starts from a trained one


def objective(kind: str, *settings: str) -> tuple[str, ...]:
    return (f"objective.type={kind}", *(f"objective.{each}" for each in settings))


def further(kind: str, *settings: str) -> Variant:
    """Starts from the run of cross-entropy, with another objective."""
    return Variant((*objective(kind, *settings), *FURTHER), init=LIKELY)


def captions(kind: str, *settings: str) -> Variant:
    """The same for captions, where the search ranks as the objective does."""
    ranked = "search.rank_by=last" if kind == "margin" else "search.rank_by=sum"
    bag = f"task.bag={'true' if 'constrained=true' in settings else 'false'}"
    longer = ("train.epochs=8", "train.tokens=512", "train.learning_rate=1e-3", "train.warmup=20", "train.clip=5.0")
    return Variant((*objective(kind, *settings), ranked, bag, *longer), init=LIKELY)


STUDIES: dict[str, Study] = {
    "objectives": Study(
        f"{GREEK}: objectives on one LSTM; from the seventh on, runs start from the first",
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
    "demonstrator": Study(
        f"{GREEK}: data as demonstrator (DAD) as Ranzato et al. use it, and the original, which keeps "
        "what earlier rounds wrote",
        "g2p-small",
        sigmorphon("gre"),
        published="the gains of DAD in Ranzato et al. 2016 are those of its own form: see objectives",
        variants={
            LIKELY: Variant(),
            "DAD": Variant(objective("dad")),
            "original DAD": Variant(objective("rollouts")),
        },
        seeds=(1, 2, 3),
    ),
    "reordering": Study(
        "Shuffled words of English captions of at most 8 words put in order by an LSTM (bag: outputs may have these "
        "words only); beam-search optimisation (BSO) ranks by the last score",
        "reordering",
        shuffled_captions(8),
        (
            lead(1, "bleu_5", "BSO", "cross-entropy further"),
            lead(1, "bleu_1", "BSO", "cross-entropy further"),
            Gate(
                "BLEU, beam of 5, constrained BSO with bags minus BSO without",
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
        f"{GREEK}: expected reward from scratch, and MIXER, which starts with cross-entropy",
        "g2p-mixer",
        sigmorphon("gre"),
        (lead(50, "exact", "MIXER", "expected reward"),),
        variants={"MIXER": Variant(), "expected reward": Variant(objective("expected_reward"))},
    ),
    "modes": Study(
        "One source with two targets, the first in 60 % of the examples: the distribution that each objective learns",
        "modes",
        two_modes,
        (
            Gate(
                "RAML, the smaller mode and its neighbours",
                lambda m: sum_of(m["RAML"], 5, 6),
                ">=",
                0.25,
            ),
            Gate("expected reward, the same", lambda m: sum_of(m["expected reward"], 5, 6), "<=", 0.01),
        ),
        variants={
            "RAML": Variant(),
            LIKELY: Variant(objective("cross_entropy")),
            "expected reward": Variant(
                (*objective("expected_reward", "reward=exact"), "train.learning_rate=2e-3"), init=LIKELY
            ),
        },
        measure=mode_probabilities,
        picture=distributions,
    ),
}
