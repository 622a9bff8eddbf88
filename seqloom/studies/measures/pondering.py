"""Measures of adaptive computation: how many steps a cell takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set, test_examples

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

COUNTED, PARTS = 20_000, 20  # characters over which steps are counted, and the rows they are cut into
SHOWN = 320  # characters in the picture


def by_difficulty(*bounds: int) -> Callable[[Predictor, Splits], Measures]:
    """Parity: error and steps, over all vectors and by the number of components that are not 0."""

    def measure(model: Predictor, data: Splits) -> Measures:
        import torch

        from seqloom.types import Padded, sum_costs

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
                steps += sum_costs(memory.costs)["steps"].tolist()
        numbers = [sum(part != "0" for part in each.split(",")) for each in sources]
        found: Measures = {"error": 100 * sum(wrong) / len(wrong), "steps": sum(steps) / len(steps)}
        for low, high in zip((1, *bounds), (*bounds, max(numbers) + 1)):
            rows = [row for row, number in enumerate(numbers) if low <= number < high]
            for name, values, unit in (("error", wrong, 100), ("steps", steps, 1)):
                found[f"{name}, {low} to {high - 1}"] = unit * sum(values[row] for row in rows) / len(rows)
        return found

    return measure


def nats_and_steps(model: Predictor, data: Splits) -> Measures:
    """Running text: nats per character, and steps per character if the cell decides on them."""
    nats = {"nats_per_token": evaluate_test_set(model, data)["nats_per_token"]}
    text = "\n".join(example.target for example in test_examples(model, data))[:COUNTED]
    steps = steps_per_character(model, text, PARTS)
    return {**nats, "steps": sum(steps) / len(steps)} if steps else nats


def passage_with_steps(model: Predictor, data: Splits) -> dict[str, Any]:
    """A passage, and the steps taken on reading each of its characters."""
    text = "\n".join(example.target for example in test_examples(model, data)[:SHOWN])
    begin = text.index("\n\n") + 2  # read what comes before, but do not show it
    text = text[: begin + SHOWN]
    return {"text": text[begin:], "steps": steps_per_character(model, text)[begin:]}


def steps_per_character(model: Predictor, text: str, parts: int = 1) -> list[float]:
    """Steps taken on reading each character, the text cut into equal parts; [] if the cell does not count steps."""
    import torch

    from seqloom.types import Memory, costs, sum_costs

    decoder, task = model.model.decoder, cast(Any, model.task)
    tokens = torch.as_tensor(task.encode(text), device=model.device)
    columns = tokens[: len(tokens) // parts * parts].view(parts, -1)
    memory = Memory.empty(parts, model.device)
    state = decoder.start(memory)
    sums: list[Any] = []
    with torch.no_grad():
        for token in columns.unbind(1):
            _, state = decoder.step(token, state, memory)
            sums.append(sum_costs(costs(state)).get("steps"))
    if sums[0] is None:
        return []
    return torch.stack(sums, dim=1).diff(dim=1, prepend=torch.zeros_like(sums[0])[:, None]).flatten().tolist()
