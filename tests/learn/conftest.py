"""Training in one line, on one thread, with a cache that is thrown away.

Every threshold here is about half-way between what is learned and what chance or the control gets: floating point
differs from processor to processor, and a training ends a little elsewhere.
"""

import pytest
import torch

import seqloom
from seqloom.train.display import Display


@pytest.fixture(scope="module")
def learn(tmp_path_factory):
    """learn(recipe, pairs) -> a trained predictor; held-out pairs are for the caller."""
    folder = tmp_path_factory.mktemp("learn")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def train(recipe, pairs):
        out = folder / f"run-{len(list(folder.glob('run-*')))}"
        return seqloom.fit(pairs, recipe, out=out, valid=pairs[:20], display=Display.quiet())

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(folder / "cache"))
        yield train
    torch.set_num_threads(threads)
