"""Every study by name."""

from seqloom.reproducing.studies import cells, copying, objectives, online, pairs, points, pondering, stories, texts
from seqloom.reproducing.study import Study

STUDIES: dict[str, Study] = {
    **pairs.STUDIES,
    **texts.STUDIES,
    **cells.STUDIES,
    **objectives.STUDIES,
    **online.STUDIES,
    **points.STUDIES,
    **copying.STUDIES,
    **stories.STUDIES,
    **pondering.STUDIES,
}
