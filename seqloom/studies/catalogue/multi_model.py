"""One model for many tasks."""

from __future__ import annotations

from seqloom.studies.gates import lead
from seqloom.studies.measures.multi_model import each_task
from seqloom.studies.sources.multi_model import four_tasks, one_task
from seqloom.studies.study import Study, Variant

TASKS = ("letters", "sums", "digits")
ALONE = tuple(f"tasks.{name}=none" for name in TASKS)

STUDIES: dict[str, Study] = {
    "multi-model": Study(
        "One model for parsing (3,396 trees), letters to sounds (a tenth of CMUdict), sums and digits as pictures "
        "(6,000 of MNIST), and the same model for parsing alone, with as many epochs",
        "multi-model",
        four_tasks,
        (lead(0, "trees bracket_f1", "together", "parsing alone"),),
        "parsing gains from joint training (Kaiser et al. 2017, table 3, in words)",
        variants={"together": Variant(), "parsing alone": Variant(ALONE, data=one_task("trees"))},
        measure=each_task,
        seeds=(1, 2, 3),
    ),
}
