"""Points in the plane as a source: outputs choose hulls, tours or triangles among them."""

from __future__ import annotations

from typing import Any

from seqloom.contracts import Task
from seqloom.data.codecs.places import Places
from seqloom.errors import SeqloomError
from seqloom.explain.record import Points


def source_points(task: Task, source: Any, truth: Any = None) -> Points | None:
    """The points of a source, without outputs; None if the task does not choose among points in the plane."""
    fits = isinstance(task.target, Places) and task.source is not None and task.source.features == 2
    if not fits:
        if truth is not None:
            raise SeqloomError(f"truth = {truth!r}: this run chooses no points of the plane; leave it out")
        return None
    assert task.source is not None
    places = [] if truth is None else task.target.decode(task.target.encode(truth, source))
    return Points(task.source.read(source).tolist(), [], places, getattr(task, "valid", "") == "triangles")
