"""All studies by name."""

from seqloom.studies.catalogue.cells import STUDIES as CELLS
from seqloom.studies.catalogue.copying import STUDIES as COPYING
from seqloom.studies.catalogue.dialogue import STUDIES as DIALOGUE
from seqloom.studies.catalogue.experts import STUDIES as EXPERTS
from seqloom.studies.catalogue.films import STUDIES as FILMS
from seqloom.studies.catalogue.front_door import STUDIES as FRONT_DOOR
from seqloom.studies.catalogue.lips import STUDIES as LIPS
from seqloom.studies.catalogue.multi_model import STUDIES as MULTI_MODEL
from seqloom.studies.catalogue.objectives import STUDIES as OBJECTIVES
from seqloom.studies.catalogue.online import STUDIES as ONLINE
from seqloom.studies.catalogue.pairs import STUDIES as PAIRS
from seqloom.studies.catalogue.parsing import STUDIES as PARSING
from seqloom.studies.catalogue.pictures import STUDIES as PICTURES
from seqloom.studies.catalogue.pixels import STUDIES as PIXELS
from seqloom.studies.catalogue.points import STUDIES as POINTS
from seqloom.studies.catalogue.pondering import STUDIES as PONDERING
from seqloom.studies.catalogue.pretraining import STUDIES as PRETRAINING
from seqloom.studies.catalogue.series import STUDIES as SERIES
from seqloom.studies.catalogue.stories import STUDIES as STORIES
from seqloom.studies.catalogue.summaries import STUDIES as SUMMARIES
from seqloom.studies.catalogue.texts import STUDIES as TEXTS
from seqloom.studies.catalogue.translation import STUDIES as TRANSLATION
from seqloom.studies.catalogue.waves import STUDIES as WAVES
from seqloom.studies.study import Study

STUDIES: dict[str, Study] = {
    **PAIRS,
    **TRANSLATION,
    **MULTI_MODEL,
    **PARSING,
    **TEXTS,
    **PRETRAINING,
    **SERIES,
    **CELLS,
    **OBJECTIVES,
    **ONLINE,
    **POINTS,
    **PICTURES,
    **LIPS,
    **PIXELS,
    **FILMS,
    **WAVES,
    **COPYING,
    **SUMMARIES,
    **STORIES,
    **DIALOGUE,
    **PONDERING,
    **EXPERTS,
    **FRONT_DOOR,
}
