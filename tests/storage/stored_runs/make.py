"""Make a stored run: python -m tests.storage.stored_runs.make FOLDER (for example tests/storage/stored_runs/format_1).

A tiny model that spells words backwards, trained in seconds, and beside it what it answers. It is made once for
each format of run folders, by the code of that day, and then never again: later code must read it and answer alike.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import seqloom
from seqloom.storage.run import FORMAT
from seqloom.train.display import Display

KEPT = ("config.toml", "format.json", "model.safetensors")  # and the tokenizers
WORDS = [
    *("loom", "weave", "thread", "warp", "weft", "spool", "shuttle", "heddle"),
    *("reed", "cloth", "yarn", "twist", "knot", "fibre", "spindle", "treadle"),
]
ASKED = ["loom", "weft", "thread", "moor", "d", "zebra", "spindles"]  # known, unknown, with letters never seen
RECIPE: dict[str, Any] = {
    "seed": 7,
    "objective": {"type": "cross_entropy", "label_smoothing": 0.1},
    "search": {"type": "beam", "beam_size": 3, "n_best": 3},
    "task": {
        "source": {"type": "text", "units": "char"},
        "target": {"type": "text", "units": "char"},
        "metrics": ["exact"],
    },
    "encoder": {"type": "recurrent", "embedding_size": 12, "size": 16, "layers": 2, "bidirectional": True},
    "decoder": {
        "type": "recurrent",
        "cell": {"type": "gru"},
        "embedding_size": 12,
        "size": 24,
        "attention": {"type": "additive", "size": 16},
        "input_feeding": True,
    },
    "train": {"steps": 150, "learning_rate": 1e-2, "validate_every": 150, "device": "cpu", "precision": "fp32"},
}


def make(folder: Path) -> None:
    if folder.exists():
        sys.exit(f"{folder} exists: a stored run is never made again")
    pairs = [(word, word[::-1]) for word in WORDS]
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["SEQLOOM_CACHE"] = temporary
        run = Path(temporary) / "run"
        seqloom.fit(pairs, RECIPE, out=run, valid=pairs, display=Display.quiet())
        folder.mkdir(parents=True)
        for path in run.iterdir():
            if path.is_file() and (path.name in KEPT or path.name.startswith(("source", "target"))):
                shutil.copy(path, folder)
    (folder / "answers.json").write_text(json.dumps(answers(folder), indent=1) + "\n", encoding="utf-8")


def answers(folder: Path) -> dict[str, Any]:
    """What a run answers: outputs with scores and log-probabilities, and the scores of given pairs."""
    model = seqloom.load(folder, device="cpu")
    outputs = [
        [{"text": one.text, "score": one.score, "log_probs": one.log_probs} for one in found]
        for found in model.candidates(ASKED)
    ]
    return {
        "format": FORMAT,
        "asked": ASKED,
        "outputs": outputs,
        "scores": model.score([(word, word[::-1]) for word in ASKED]),
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(Path(sys.argv[1]))
