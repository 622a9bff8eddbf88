"""`task.start = "eos"`: EOS is the first input in training, search, scoring, ensembles, prefixes and exports."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqloom
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data.codecs.text import Text
from seqloom.data.special_tokens import BOS, EOS, SPECIAL
from seqloom.errors import SeqloomError
from seqloom.predictor import Predictor
from seqloom.tasks.pairs import Pairs
from seqloom.types import Padded

PAIRS = [("ab", "xy"), ("ba", "yx"), ("aab", "xxy"), ("bba", "yyx")] * 6
SMALL = ["train.steps=12", "train.tokens=64", "train.device=cpu", "train.decode=2", "train.select_by=loss"]
SIZES = ["encoder.size=16", "decoder.size=16", "search.beam_size=1"]
KINDS = {
    "recurrent": ("dates", ["decoder.embedding_size=8", "decoder.attention.size=8"]),
    "transformer": (
        "g2p-transformer",
        ["task.target.units=char", "encoder.hidden=16", "decoder.hidden=16", "encoder.heads=2", "decoder.heads=2"],
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Predictor]:
    """Two runs that start with EOS, and one that starts with BOS."""
    recipe, settings = KINDS[request.param]
    folder, made = tmp_path_factory.mktemp("start"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(folder / "cache"))
        for start, seed in (("eos", 1), ("eos", 2), ("bos", 1)):
            changed = [*SMALL, *SIZES, *settings, f"task.start={start}", f"seed={seed}"]
            out = folder / f"{start}-{seed}"
            made.append(seqloom.fit(PAIRS, recipe, out=out, valid=PAIRS[:4], settings=changed, as_written=True))
    return made


def brute_force(models: list[Predictor], source: str, longest: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every output of at most so many tokens: the mean of the models, step by step."""
    first = models[0]
    assert first.task.source is not None
    tokens = range(len(SPECIAL), first.task.target.vocabulary or 0)
    own = Padded.stack([first.task.source.read(source)]).to("cpu")
    found = {}
    for length in range(longest + 1):
        for output in itertools.product(tokens, repeat=length):
            inputs = Padded.stack([np.array([EOS, *output])]).to("cpu")
            with torch.inference_mode():
                each = [model.model.decoder(model.model.encode(own), inputs).scores.softmax(-1) for model in models]
            mean = torch.stack(each).mean(0).log()[0]
            found[output] = float(sum(mean[place, token] for place, token in enumerate([*output, EOS])))
    return found


def test_the_first_input_of_training_is_eos_and_targets_stay_as_they_are() -> None:
    words = Text(units="char").fit(["ab"])
    ours, plain = (Pairs(source=words, target=words, start=start) for start in ("eos", "bos"))
    for task, first in ((ours, EOS), (plain, BOS)):
        batch = task.batch([words.encode("a")], [words.encode("ab")])
        assert task.bos == first
        assert batch.inputs.values.tolist() == [[first, *words.encode("ab")]]
        assert batch.targets.values.tolist() == [[*words.encode("ab"), EOS]]


def test_every_decoder_is_built_with_it(runs: list[Predictor]) -> None:
    assert [(each.task.bos, each.model.decoder.bos) for each in runs] == [(EOS, EOS), (EOS, EOS), (BOS, BOS)]
    stored = seqloom.load(runs[0].path, device="cpu")
    assert stored.model.decoder.bos == EOS
    assert stored.predict(["ab"]) == runs[0].predict(["ab"])


def test_scores_and_search_are_those_of_brute_force(runs: list[Predictor]) -> None:
    for members in ([runs[0]], runs[:2]):
        model = Predictor.ensemble(members)
        every = brute_force(members, "ab", 3)
        task: Any = model.task
        texts = {output: task.decode(list(output), "ab") for output in every}
        some = [output for output in every if output][::7]
        scored = model.score([("ab", texts[output]) for output in some])
        assert scored == pytest.approx([every[output] for output in some], abs=1e-4)
        wide = {"beam_size": 40, "length_penalty": 0.0, "maximum_length": 4}
        best = max(every, key=lambda output: every[output])
        (found,) = model.candidates(["ab"], **wide)
        assert found[0].text == texts[best]
        assert found[0].score == pytest.approx(every[best], abs=1e-4)
        prefix = max((output for output in every if output), key=lambda output: every[output])[:1]
        begun = {output: value for output, value in every.items() if output[:1] == prefix}
        (found,) = model.candidates(["ab"], prefix=task.decode(list(prefix), "ab"), **wide)
        assert found[0].text == texts[max(begun, key=lambda output: begun[output])]


def test_constraints_do_not_take_the_first_input_for_an_output(runs: list[Predictor]) -> None:
    every = brute_force(runs[:1], "ab", 3)
    task: Any = runs[0].task
    for options, allowed in (
        ({"no_repeat": 1}, lambda output: len(set(output)) == len(output)),
        ({"minimum_length": 2}, lambda output: len(output) >= 2),
    ):
        best = max((output for output in every if allowed(output)), key=lambda output: every[output])
        settings = {"beam_size": 40, "length_penalty": 0.0, "maximum_length": 4, **options}
        (found,) = runs[0].candidates(["ab"], **settings)
        assert found[0].text == task.decode(list(best), "ab")


def test_runs_that_start_differently_make_no_ensemble(runs: list[Predictor]) -> None:
    with pytest.raises(SeqloomError, match="make no ensemble"):
        Predictor.ensemble([runs[0], runs[2]])


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_exports_start_with_it_too(runs: list[Predictor], engine: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime" if engine == "onnx" else "ctranslate2")
    from seqloom.engines.export import export

    if (engine == "ctranslate2") != (runs[0].recipe["decoder"]["type"] == "transformer"):
        pytest.skip("each engine has decoders of one kind")
    assert runs[0].path is not None
    export(runs[0].path, engine, tmp_path / engine)
    exported = seqloom.load(tmp_path / engine)
    sources = ["ab", "ba", "aab"]
    ours, theirs = (
        [found[0] for found in each.candidates(sources, beam_size=3, maximum_length=6)] for each in (runs[0], exported)
    )
    assert [each.text for each in theirs] == [each.text for each in ours]
    assert [each.score for each in theirs] == pytest.approx([each.score for each in ours], abs=1e-3)


def test_online_decoders_refuse_it() -> None:
    full = complete(override(read_recipe("g2p-ssnt"), ["task.start=eos"]), "g2p-ssnt")
    with pytest.raises(SeqloomError, match=r'set task.start = "bos"'):
        check_recipe(full)
