"""Questions about stories."""

from __future__ import annotations

from seqloom.studies.gates import Gate, at_least, lead
from seqloom.studies.measures.stories import babi_errors
from seqloom.studies.pictures import errors_by_task
from seqloom.studies.sources.stories import babi, cloze
from seqloom.studies.study import Study, Variant

TASKS, SOLVED = range(1, 21), (1, 11, 12, 13, 15, 20)  # of bAbI; those that must be almost solved


STUDIES: dict[str, Study] = {
    "babi": Study(
        "bAbI, 1,000 questions per task, one memory network of three hops for each; of five runs that with the lowest "
        "training loss; error in %",
        "babi",
        babi(1),
        (
            Gate(
                "error, mean of 20 tasks",
                lambda m: sum(m[f"task {task}"]["error"] for task in TASKS) / 20,
                "<=",
                20,
                stricter=17,
            ),
            Gate(
                f"error, worst of tasks {', '.join(map(str, SOLVED))}",
                lambda m: max(m[f"task {task}"]["error"] for task in SOLVED),
                "<=",
                3,
            ),
            Gate(
                "error, task 2 without ages minus with",
                lambda m: m["task 2 without ages"]["error"] - m["task 2"]["error"],
                ">=",
                20,
            ),
        ),
        "the last column, mean 13.8: best of several runs by training error (Sukhbaatar et al. 2015, table 1)",
        variants={
            **{f"task {task}": Variant(data=babi(task)) for task in TASKS},
            "task 2 without ages": Variant(("encoder.ages=0",), data=babi(2)),
        },
        measure=babi_errors,
        seeds=(1, 2, 3, 4, 5),
        picture=errors_by_task,
        choose="train_loss",
    ),
    "cloze": Study(
        "bAbI's questions with one supporting fact (1,000, renamed 10 times) and two (10,000, renamed twice): people, "
        "places and things have other names in every story. The attention-sum reader (sum), and the same with the "
        "maximum over occurrences (max)",
        "cloze",
        cloze(1, 10),
        (
            at_least(95, "exact", "one fact, sum"),
            at_least(60, "exact", "two facts, sum"),
            lead(0, "exact", "two facts, sum", "two facts, max"),
        ),
        "none on these; CNN 69.5, CBT-NE 68.6, CBT-CN 63.4, single models (Kadlec et al. 2016)",
        variants={
            f"{facts}, {pooling}": Variant((f"decoder.pooling={pooling}", f"train.epochs={epochs}"), data=data)
            for facts, epochs, data in (("one fact", 10, cloze(1, 10)), ("two facts", 20, cloze(2, 2, "en-10k")))
            for pooling in ("sum", "max")
        },
    ),
}
