"""Every study by name."""

from seqloom.reproducing.studies.cells import STUDIES as CELLS
from seqloom.reproducing.studies.copying import STUDIES as COPYING
from seqloom.reproducing.studies.objectives import STUDIES as OBJECTIVES
from seqloom.reproducing.studies.online import STUDIES as ONLINE
from seqloom.reproducing.studies.pairs import STUDIES as PAIRS
from seqloom.reproducing.studies.points import STUDIES as POINTS
from seqloom.reproducing.studies.pondering import STUDIES as PONDERING
from seqloom.reproducing.studies.stories import STUDIES as STORIES
from seqloom.reproducing.studies.texts import STUDIES as TEXTS
from seqloom.reproducing.study import Study

STUDIES: dict[str, Study] = {
    **PAIRS,
    **TEXTS,
    **CELLS,
    **OBJECTIVES,
    **ONLINE,
    **POINTS,
    **COPYING,
    **STORIES,
    **PONDERING,
}
