"""What studies measure beside the metrics of a task."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from seqloom.inference.candidates import best_predictions
from seqloom.studies.study import Data, Measures, on_the_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor


def valid_and_test(model: Predictor, data: Data) -> Measures:
    """Perplexities of a language model, as its literature reports them."""
    assert data.valid is not None
    return {
        "valid_perplexity": model.evaluate(data.valid[0])["perplexity"],
        "test_perplexity": on_the_test_set(model, data)["perplexity"],
    }


def next_symbol(model: Predictor, data: Data) -> Measures:
    """How often the likeliest next token is the right one, those before it given; and whole outputs."""
    import torch

    from seqloom.objectives.cross_entropy import CrossEntropy

    examples = test_examples(model, data)
    source, target = model.task.source, model.task.target
    assert source is not None
    correct = count = 0.0
    with torch.no_grad():
        for first in range(0, len(examples), 256):
            part = examples[first : first + 256]
            batch = model.task.batch(
                [source.read(example.source) for example in part],
                [target.encode(example.target, example.source) for example in part],
            )
            loss = CrossEntropy()(model.model, batch.to(model.device), 1.0)
            correct, count = correct + loss.logs["correct"].item(), count + loss.count.item()
    return {"accuracy": 100 * correct / count, **on_the_test_set(model, data)}


def counted(model: Predictor, data: Data) -> Measures:
    """How many of the lines a^n b^n the model ends where they end, a^n b given, by its likeliest tokens."""
    lines = [example.target for example in test_examples(model, data)]
    whole = [model.generate(prefix=line[: len(line) // 2 + 1], argmax_every=1)[0] == line for line in lines]
    return {"accepted": 100 * sum(whole) / len(whole)}


def delayed(model: Predictor, data: Data) -> Measures:
    """Delayed copy: outputs, and by how many tokens of the source they came later than they could, on average."""
    from seqloom.data.generators.delayed_copy import delays

    sources, references = model.task.references(test_examples(model, data))
    found = best_predictions(model.system, sources)
    late = delays(sources, [each.times or [] for each in found])
    measured = model.task.measure([each.text for each in found], references)
    return {**measured, "delay": sum(late) / len(late) if late else math.inf}


def by_length(*bounds: int) -> Callable[[Predictor, Data], Measures]:
    """The first metric of the task for sources of so many tokens, and for all."""

    def measure(model: Predictor, data: Data) -> Measures:
        examples = test_examples(model, data)
        source = model.task.source
        assert source is not None
        sources, references = model.task.references(examples)
        predictions = model.predict(sources)
        lengths = [len(source.read(each)) for each in sources]
        found = model.task.measure(predictions, references, sources)
        name = next(iter(found))
        for low, high in zip((0, *bounds), (*bounds, max(lengths) + 1)):
            rows = [row for row, length in enumerate(lengths) if low <= length < high]
            if rows:
                columns = ([column[row] for row in rows] for column in (predictions, references, sources))
                part = model.task.measure(*columns)
                found[f"{name}_{low}_to_{high - 1}"] = part[name]
        return found

    return measure


def by_search(model: Predictor, data: Data) -> Measures:
    """Greedy against beams, with and without normalisation by length; lengths relative to the references."""
    sources, references = model.task.references(test_examples(model, data))
    words = sum(len(each[0].split()) for each in references)
    settings: dict[str, dict[str, Any]] = {
        "greedy": {"beam_size": 1},
        "beam_5": {"beam_size": 5},
        "beam_5_raw": {"beam_size": 5, "length_penalty": 0.0},
        "beam_20": {"beam_size": 20},
        "beam_20_raw": {"beam_size": 20, "length_penalty": 0.0},
    }
    found: Measures = {}
    for name, search in settings.items():
        predictions = model.predict(sources, **search)
        found[f"{name}_bleu"] = model.task.measure(predictions, references)["bleu"]
        found[f"{name}_length"] = sum(len(each.split()) for each in predictions) / words
    return found


def by_beam(model: Predictor, data: Data) -> Measures:
    """Outputs that may be anything, and outputs of the words of their source alone, by beams of 1, 5 and 10.

    By the recipe's way to rank, and for a beam of 5 by the sum of log-probabilities too.
    """
    sources, references = model.task.references(test_examples(model, data))
    task: Any = model.task
    found: Measures = {}
    for name, bag in (("bleu", False), ("bag_bleu", True)):
        task.bag = bag
        for size in (5, 1, 10):
            predictions = model.predict(sources, beam_size=size)
            found[f"{name}_{size}"] = task.measure(predictions, references)["bleu"]
        predictions = model.predict(sources, beam_size=5, rank_by="sum")
        found[f"{name}_5_by_sum"] = task.measure(predictions, references)["bleu"]
    return found


def beam_and_greedy(model: Predictor, data: Data) -> Measures:
    """The metrics of the task and latency by a beam of 4, and the first metric by the likeliest tokens."""
    found = on_the_test_set(model, data, beam_size=4)
    name = model.task.metrics[0]
    return {name: found.pop(name), f"greedy_{name}": on_the_test_set(model, data, beam_size=1)[name], **found}


def by_wait(metric: str, *waits: int) -> Callable[[Predictor, Data], Measures]:
    """A metric and the average proportion of the source that was read, so many inputs behind; of an agent its own."""

    def measure(model: Predictor, data: Data) -> Measures:
        examples = test_examples(model, data)
        if model.model.decoder.blanks:
            found = model.evaluate(examples)
            return {metric: found[metric], "AP": found["average_proportion"]}
        measured: Measures = {}
        for wait in waits:
            found = model.evaluate(examples, wait=wait)
            measured[f"{metric}, k = {wait}"] = found[metric]
            measured[f"AP, k = {wait}"] = found["average_proportion"]
        return measured

    return measure


def hard_and_expected(model: Predictor, data: Data) -> Measures:
    """The metrics of the task; of monotonic attention also if its contexts were expectations, as in training."""
    attention: Any = getattr(model.model.decoder, "attention", None)
    found = on_the_test_set(model, data)
    expected = found
    if getattr(attention, "decoding", "") == "hard":
        attention.decoding = "soft"
        expected = on_the_test_set(model, data)
        attention.decoding = "hard"
    names = model.task.metrics
    return {**{name: found[name] for name in names}, **{f"expected_{name}": expected[name] for name in names}}


def by_difficulty(*bounds: int) -> Callable[[Predictor, Data], Measures]:
    """Parity: the error, and the steps of the cell, of all vectors and by how many of their components are not 0."""

    def measure(model: Predictor, data: Data) -> Measures:
        import torch

        from seqloom.types import Padded

        examples = test_examples(model, data)
        source = model.task.source
        assert source is not None
        sources, references = model.task.references(examples)
        wrong = [one != other for one, (other,) in zip(model.predict(sources), references)]
        steps: list[float] = []
        with torch.no_grad():
            for first in range(0, len(sources), 500):
                read = Padded.stack([source.read(each) for each in sources[first : first + 500]])
                memory = model.model.encode(read.to(model.device))
                steps += memory.extra["cost"]["steps"].tolist()
        numbers = [sum(part != "0" for part in each.split(",")) for each in sources]
        found: Measures = {"error": 100 * sum(wrong) / len(wrong), "steps": sum(steps) / len(steps)}
        for low, high in zip((1, *bounds), (*bounds, max(numbers) + 1)):
            rows = [row for row, number in enumerate(numbers) if low <= number < high]
            for name, values, unit in (("error", wrong, 100), ("steps", steps, 1)):
                found[f"{name}, {low} to {high - 1}"] = unit * sum(values[row] for row in rows) / len(rows)
        return found

    return measure


READ, SIDE_BY_SIDE, SHOWN = 20_000, 20, 320  # characters that steps are counted over, in so many parts; of a picture


def nats_and_steps(model: Predictor, data: Data) -> Measures:
    """Of a running text: nats a character, and how many steps each took, where the cell decides so itself."""
    found = on_the_test_set(model, data)
    steps = steps_over(model, "\n".join(example.target for example in test_examples(model, data))[:READ], SIDE_BY_SIDE)
    nats = {"nats_per_token": found["nats_per_token"]}
    return {**nats, "steps": sum(steps) / len(steps)} if steps else nats


def steps_over_text(model: Predictor, data: Data) -> dict[str, Any]:
    """A passage, and the steps on reading each character of it."""
    text = "\n".join(example.target for example in test_examples(model, data)[:SHOWN])
    begin = text.index("\n\n") + 2  # what stands before is there to be read
    text = text[: begin + SHOWN]
    return {"text": text[begin:], "steps": steps_over(model, text)[begin:]}


def steps_over(model: Predictor, text: str, parts: int = 1) -> list[float]:
    """How many steps each character took when it was read, the text cut into so many parts; none where all take one."""
    import torch

    from seqloom.types import Memory, costs

    decoder, task = model.model.decoder, cast(Any, model.task)
    symbols = torch.as_tensor(task.encode(text), device=model.device)
    columns = symbols[: len(symbols) // parts * parts].view(parts, -1)
    memory = Memory.empty(parts, model.device)
    state = decoder.start(memory)
    sums: list[Any] = []
    with torch.no_grad():
        for token in columns.unbind(1):
            _, state = decoder.step(token, state, memory)
            sums.append(costs(state).get("steps"))
    if sums[0] is None:
        return []
    return torch.stack(sums, dim=1).diff(dim=1, prepend=torch.zeros_like(sums[0])[:, None]).flatten().tolist()


CHANNEL_WEIGHTS, LM_WEIGHTS, BONUSES = (0.25, 0.5, 1.0), (0.1, 0.3), (0.0, 0.4)


def noisy_channel(model: Predictor, data: Data) -> Measures:
    """The WER of a direct model alone, and with a channel, a language model and both of its seed in its beam.

    Weights are those of a small grid that are best on every tenth source of the validation set. Other runs of the study
    are measured by the metrics of their task.
    """
    from seqloom.predictor import Predictor

    folder = model.path
    assert folder is not None
    assert data.valid is not None
    if folder.parent.name != "direct":
        return on_the_test_set(model, data)
    channel, lm = (
        Predictor.load(folder.parent.parent / name / folder.name, model.device.type)
        for name in ("channel", "language-model")
    )
    valid, test = (model.task.references(model.examples(files)) for files in (data.valid, data.test))

    def wer(sources: list[Any], references: list[Any], weights: dict[str, float]) -> float:
        helpers: dict[str, Any] = {"channel": channel, **weights} if weights else {}
        if "lm_weight" in weights:
            helpers["lm"] = lm
        return 100 - model.task.measure(model.predict(sources, **helpers), references)["exact"]

    some = valid[0][::10], valid[1][::10]
    systems = {
        "direct": {},
        "lm": {"channel_weight": (0.0,), "lm_weight": LM_WEIGHTS, "length_bonus": BONUSES},
        "channel": {"channel_weight": CHANNEL_WEIGHTS, "length_bonus": BONUSES},
        "channel_lm": {"channel_weight": CHANNEL_WEIGHTS, "lm_weight": LM_WEIGHTS, "length_bonus": BONUSES},
    }
    found: Measures = {}
    for name, grid in systems.items():
        ways = [dict(zip(grid, values)) for values in product(*grid.values())]
        best = min(ways, key=lambda weights: wer(*some, weights)) if grid else {}
        found[f"{name}_wer"] = wer(*test, best)
        found |= {f"{name}: {setting}": value for setting, value in best.items() if len(grid[setting]) > 1}
    return {**found, "channel_lm_better": float(found["channel_lm_wer"] < found["direct_wer"])}


def copied(model: Predictor, data: Data) -> Measures:
    """BLEU, and the recall of words that the vocabulary lacks and the source has.

    Of a model that cannot copy also with unknown words written as such, and as the words it looked at most. Of one that
    can, whether its BLEU is above all that the plain model of its seed reaches without looking.
    """
    from seqloom.metrics.copy_recall import copy_recall
    from seqloom.predictor import Predictor

    sources, references = model.task.references(test_examples(model, data))

    def measured(model: Predictor, **settings: Any) -> Measures:
        task: Any = model.task
        known = {task.target.decode([symbol]) for symbol in range(task.target.vocabulary)}
        predictions = model.predict(sources, **settings)
        recall = copy_recall(predictions, references, sources, known)["copy_recall"]
        return {"bleu": task.measure(predictions, references, sources)["bleu"], "oov_recall": recall}

    def unaided(model: Predictor) -> dict[str, Measures]:
        task: Any = model.task
        without = measured(model)
        task.writes_unknown = True
        unknown = measured(model)
        task.writes_unknown = False
        return {"": without, "unknown_": unknown}

    if model.task.target.chooses:
        folder = model.path
        assert folder is not None
        plain = Predictor.load(folder.parent.parent / "plain" / folder.name, model.device.type)
        found, others = measured(model), unaided(plain)
        return {**found, "better": float(found["bleu"] > max(each["bleu"] for each in others.values()))}
    ways = {**unaided(model), "replaced_": measured(model, replace_unknown=True)}
    return {f"{way}{name}": value for way, each in ways.items() for name, value in each.items()}


BABI = (0.1, 8.2, 41.8, 4.4, 13.7, 7.9, 20.3, 11.7, 13.6, 9.7, 0.7, 0.0, 0.3, 0.9, 0.0, 0.4, 51.0, 10.5, 81.4, 0.0)


def errors_of_babi(model: Predictor, data: Data) -> Measures:
    """Error of the test set, loss of the training set, and the published error (Sukhbaatar et al. 2015, table 1)."""
    task = int(Path(data.test[0]).stem.split("-")[2])
    scores = model.score(list(model.examples(data.train)))
    found = {"error": 100 - on_the_test_set(model, data)["exact"], "train_loss": -sum(scores) / len(scores)}
    return {**found, "published": BABI[task - 1]} if model.recipe["encoder"]["ages"] else found


def also_published(model: Predictor, data: Data) -> Measures:
    """Hulls: the metrics of the task; of five points also on the file that others measured with."""
    from seqloom.studies.sources import published_hulls

    found = on_the_test_set(model, data)
    if len(test_examples(model, data)[0].source.split()) == 5:
        examples = list(model.examples(published_hulls(Path(data.test[0]).parent)))
        found |= {f"published_{name}": value for name, value in model.evaluate(examples).items()}
    return found


def by_points(generator: str, count: int, *numbers: int) -> Callable[[Predictor, Data], Measures]:
    """The metrics of the task for so many examples of each number of points."""

    def measure(model: Predictor, data: Data) -> Measures:
        from seqloom.data.generators.catalogue import make_examples

        found: Measures = {}
        for number in numbers:
            measured = model.evaluate(make_examples(generator, count, 2, {"shortest": number, "longest": number}))
            found |= {f"{name}, n = {number}": value for name, value in measured.items()}
        return found

    return measure


def beside_neighbours(model: Predictor, data: Data) -> Measures:
    """Tours: how long those of the model are, those to the nearest point that is left, and those of the test set."""
    from seqloom.data.generators.tour import distances, nearest
    from seqloom.metrics.points import points_of
    from seqloom.metrics.tour import tour

    examples = test_examples(model, data)
    sources, references = model.task.references(examples)
    ways = [nearest(distances(points_of("tour", source)), 0).tolist() for source in sources]
    shortest = [choices[0] for choices in references]
    return {
        **model.evaluate(examples),
        "nearest_neighbour": tour(ways, references, sources)["tour"],
        "optimum": tour(shortest, references, sources)["tour"],
    }


def answers_drawn(generator: str, *numbers: int) -> Callable[[Predictor, Data], dict[str, Any]]:
    """Answers to examples of so many points each, to be drawn over the truth; none: of as many as the test set has."""

    def show(model: Predictor, data: Data) -> dict[str, Any]:
        from seqloom.data.generators.catalogue import make_examples
        from seqloom.metrics.points import places_of, points_of

        usual = len(test_examples(model, data)[0].source.split())
        shown = []
        for seed, number in enumerate(numbers or (usual,) * 3, start=3):
            (example,) = make_examples(generator, 1, seed, {"shortest": number, "longest": number})
            (answer,) = model.predict([example.source])
            shown.append(
                {
                    "where": points_of(generator, example.source).tolist(),
                    "outputs": [places_of(answer, number)],
                    "truth": places_of(example.target, number),
                }
            )
        return {"points": shown}

    return show


def by_number(model: Predictor, data: Data) -> Measures:
    """How likely outputs of six tokens a and b are, by how many of them are b; and all others."""
    texts = [" ".join(each) for each in product("ab", repeat=6)]
    chances = [math.exp(score) for score in model.score([("go", text) for text in texts])]
    found = {f"{count} b": 0.0 for count in range(7)}
    for text, chance in zip(texts, chances):
        found[f"{text.count('b')} b"] += chance
    return {**found, "others": max(1 - sum(chances), 0.0)}
