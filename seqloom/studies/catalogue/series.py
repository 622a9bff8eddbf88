"""Language models of vectors, by cell: music and speech."""

from __future__ import annotations

from seqloom.studies.gates import at_most
from seqloom.studies.sources.series import piano_rolls, single_digits
from seqloom.studies.study import Study, Variant

CELLS = {"tanh": "elman", "gru": "gru", "lstm": "lstm"}
PUBLISHED = {"jsb": {"tanh": 9.10, "gru": 8.54, "lstm": 8.67}, "nottingham": {"tanh": 3.13, "gru": 3.23, "lstm": 3.13}}
WITHIN = 1.1  # of the published figure


def by_cell(name: str, *settings: str, prefix: str = "") -> dict[str, Variant]:
    """One variant per cell on one collection of music."""
    return {
        f"{prefix}{cell}": Variant((f"decoder.decoder.cell.type={kind}", *settings), data=piano_rolls(name))
        for cell, kind in CELLS.items()
    }


STUDIES: dict[str, Study] = {
    "music": Study(
        "Piano rolls, the chorales of JSB and the tunes of Nottingham: nats per time step of 88 keys, by cell, equal "
        "epochs",
        "music",
        piano_rolls("jsb-chorales"),
        tuple(at_most(WITHIN * figure, "nats_per_step", f"jsb {cell}") for cell, figure in PUBLISHED["jsb"].items()),
        "; ".join(
            f"{name}: {', '.join(f'{cell} {figure:.2f}' for cell, figure in cells.items())}"
            for name, cells in PUBLISHED.items()
        )
        + " (Chung et al. 2014, table 2)",
        variants=by_cell("jsb-chorales", prefix="jsb ")
        | by_cell("nottingham", "train.epochs=15", "decoder.decoder.dropout=0.0", prefix="nottingham "),
    ),
    "speech-signal": Study(
        "Recordings of single digits, frames of 20 samples at 8 kHz, scaled to deviation 1: nats per frame by a "
        "mixture of 20 Gaussians, by cell",
        "speech-signal",
        single_digits,
        published="none on these; on other speech the gated cells are far ahead of tanh (Chung et al. 2014, figure 3)",
        variants={
            cell: Variant((f"decoder.decoder.cell.type={kind}", "train.epochs=4")) for cell, kind in CELLS.items()
        },
    ),
}
