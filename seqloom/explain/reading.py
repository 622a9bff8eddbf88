"""Reading outputs once more, to see where the model looked and what else it would have said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from seqloom.contracts import Decoder, Search
from seqloom.errors import SeqloomError
from seqloom.explain.explanation import ExplainedHypothesis, Explanation, Heads, Matrix, TreeNode
from seqloom.explain.points import chosen_points
from seqloom.search.beam import Beam, BeamSearch
from seqloom.search.constraints import Constraints
from seqloom.types import Hypothesis, Memory, Padded, costs

if TYPE_CHECKING:
    from seqloom.predict import Predictor

OF_A_TEXT = 40  # symbols of a running text that are explained
RUNNERS_UP = 5
DETAILED = 2  # hypotheses shown layer by layer and head by head: more would make pages of many megabytes


@dataclass(frozen=True)
class Reading:
    """One hypothesis under teacher forcing; U counts the end symbol."""

    log_probs: Tensor  # (U, V)
    alignment: Matrix  # U x T, mean over layers and heads; empty without a source
    source_attention: Heads
    self_attention: Heads
    steps: list[float]  # U: how often each was thought over; none where the decoder does not decide so itself
    copied: list[float]  # U: how much of the probability is that of copies; none where the decoder has none


def read_again(decoder: Decoder, memory: Memory, entry: int, found: Sequence[Hypothesis]) -> list[Reading]:
    """The readings of one source's hypotheses, in one pass."""
    if not found:
        return []
    inputs = inputs_of(decoder, found).to(memory.lengths.device)
    ours = memory.select(torch.tensor([entry], device=memory.lengths.device))
    output, steps = decoder(ours, inputs, attention=True), steps_before(decoder, ours, inputs)
    log_probs = torch.log_softmax(output.scores, dim=-1)
    source, own = (output.attention.get(name) for name in ("source", "self"))  # (n, layers, heads, U, T or U)
    width = int(memory.lengths[entry])
    readings = []
    for row, length in enumerate(inputs.lengths.tolist()):
        across = None if source is None else source[row, :, :, :length, :width]
        back = None if own is None else own[row, :, :, :length, :length]
        readings.append(
            Reading(
                log_probs[row, :length],
                [] if across is None else across.mean((0, 1)).tolist(),
                [] if across is None else across.tolist(),
                [] if back is None else back.tolist(),
                [] if steps is None else steps[row, :length].tolist(),
                [] if output.copied is None else output.copied[row, :length].tolist(),
            )
        )
    return readings


def inputs_of(decoder: Decoder, found: Sequence[Hypothesis]) -> Padded:
    """What a decoder reads to write these: each symbol after the one before it.  (n, U)"""
    inputs = Padded.stack([np.array([decoder.bos, *one.tokens]) for one in found])
    # without an end the last symbol is nobody's input
    return inputs if decoder.eos is not None else Padded(inputs.values[:, :-1], inputs.lengths - 1)


def allowed(constraints: Constraints, inputs: Padded, vocabulary: int) -> Tensor:
    """Which symbols might have stood in each place: the constraints of a search's first row, replayed.  (n, U, V)"""
    rows, device = len(inputs.lengths), inputs.values.device
    constraints = constraints.select(torch.zeros(rows, dtype=torch.long, device=device))
    places = []
    for token in inputs.values.unbind(1):
        constraints = constraints.step(token)
        places.append(constraints.forbid(torch.zeros(rows, vocabulary, device=device)) == 0)
    return torch.stack(places, dim=1)


def steps_before(decoder: Decoder, memory: Memory, inputs: Padded) -> Tensor | None:
    """How often a decoder that decides so itself stepped before it wrote each symbol.  (n, U)"""
    state = decoder.start_rows(memory, len(inputs.lengths))
    if "steps" not in costs(state):
        return None
    sums = [costs(state)["steps"]]
    for token in inputs.values.unbind(1):
        _, state = decoder.step(token, state, memory)
        sums.append(costs(state)["steps"])
    return torch.stack(sums, dim=1).diff(dim=1)


def steps_at(memory: Memory) -> list[float]:
    """How often an encoder that decides so itself thought over each place of its one source."""
    taken = memory.extra.get("steps")  # (1, T, 1)
    return [] if taken is None else taken[0, :, 0].tolist()


@torch.no_grad()
def explain(predictor: Predictor, source: Any, n_best: int, truth: Any = None, **settings: Any) -> Explanation:
    """Everything there is to see of one input; beside points of the plane the true places among them."""
    model, task = predictor.model, predictor.task
    if (source is None) != (task.source is None):
        raise SeqloomError("explain: a language model takes no source, any other model takes one")
    drawn = chosen_points(task, source, truth)
    if task.running:  # it has no end: a line's worth is enough to look at
        settings.setdefault("maximum_length", min(task.window, OF_A_TEXT))
    width = settings.pop("beam_size", predictor.recipe["search"].get("beam_size", 5))
    own, search = searches(predictor, width, n_best, **{"type": "beam", **settings})
    assert isinstance(search, BeamSearch)
    tokens = None if task.source is None else predictor.read(source)[0]
    padded = None if tokens is None else Padded.stack([tokens]).to(predictor.device)
    memory = model.encode(padded, 1, attention=True)
    constraints = [*predictor.constraints((), ()), *task.constraints(padded)]
    start = search.start(model.decoder, memory, None, constraints)
    beam = search.advance(model.decoder, memory, start)
    found = search.finish(model.decoder, memory, beam)[0]
    if own is not search:
        found = answer_first(own(model.decoder, memory, None, constraints)[0], found, n_best)
    if not found:
        raise SeqloomError(f"no output for {source!r} meets the constraints within the length limit")

    def piece(token: int) -> str:
        if task.running and token == task.bos:
            return "⏎"
        return "<eos>" if token == model.decoder.eos else predictor.pieces(task.target, [token], source)[0]

    readings = read_again(model.decoder, memory, 0, found)
    inputs = inputs_of(model.decoder, found).to(predictor.device)
    may = allowed(start.constraints, inputs, readings[0].log_probs.shape[1])
    hypotheses = []
    for rank, (one, reading) in enumerate(zip(found, readings)):
        ids = [*one.tokens, *([] if model.decoder.eos is None else [model.decoder.eos])]
        possible = reading.log_probs.masked_fill(~may[rank, : len(ids)], -torch.inf)
        hypotheses.append(
            ExplainedHypothesis(
                text=task.target.line(task.decode(one.tokens, source)),
                score=one.score,
                tokens=[piece(token) for token in ids],
                log_probs=[float(row[token]) for row, token in zip(reading.log_probs, ids)],
                runners_up=[likeliest(row, token, piece) for row, token in zip(possible, ids)],
                alignment=reading.alignment,
                source_attention=reading.source_attention if rank < DETAILED else [],
                self_attention=reading.self_attention if rank < DETAILED else [],
                steps=reading.steps,
                copied=reading.copied,
            )
        )
    inner = memory.extra.get("attention")
    return Explanation(
        source=[] if tokens is None else predictor.pieces(task.source, tokens, source),
        source_text="" if source is None else str(source),
        hypotheses=hypotheses,
        tree=tree(beam, piece, [*found[0].tokens, model.decoder.eos]),
        encoder_attention=[] if inner is None else inner[0].tolist(),
        points=drawn and replace(drawn, outputs=[task.decode(one.tokens, source) for one in found]),
        steps=steps_at(memory),
        model=facts(predictor, own, search),
    )


def searches(predictor: Predictor, width: int, n_best: int, **settings: Any) -> tuple[Search, Search]:
    """The search that answers, and a wider one for all else there is to see; where the widths agree they are one."""
    wide = predictor.search(**{**settings, "beam_size": max(width, n_best), "n_best": n_best})
    return wide if width >= n_best else predictor.search(**{**settings, "beam_size": width, "n_best": 1}), wide


def answer_first(answer: Sequence[Hypothesis], others: Sequence[Hypothesis], n_best: int) -> list[Hypothesis]:
    """What `predict` says, then the others of a wider beam; without an answer nothing."""
    return [*answer, *(one for one in others if one.tokens != answer[0].tokens)][:n_best] if answer else []


def likeliest(log_probs: Tensor, chosen: int, piece: Callable[[int], str]) -> list[tuple[str, float]]:
    """The symbols that might have stood in a place with their probabilities, the chosen one among them.  (V,)"""
    best = log_probs.topk(min(RUNNERS_UP, len(log_probs)))
    ranked = dict(zip(best.indices.tolist(), best.values.exp().tolist()))
    if chosen not in ranked:  # a beam keeps unlikely symbols, too
        ranked[chosen] = float(log_probs[chosen].exp())
    return [(piece(token), value) for token, value in ranked.items() if value]


def tree(beam: Beam, piece: Any, best: list[int | None]) -> list[TreeNode]:
    """What the beam kept, step by step."""
    nodes: list[TreeNode] = []
    above: dict[int, int] = {}  # slot of the step before -> its node
    on_path: set[int] = set()
    for number, step in enumerate(beam.steps):
        places: dict[int, int] = {}
        for slot, total in enumerate(step.totals[0].tolist()):
            if total == float("-inf"):
                continue
            token, parent = int(step.tokens[0, slot]), above.get(int(step.parents[0, slot]), -1)
            follows = (parent in on_path or number == 0) and number < len(best) and token == best[number]
            places[slot] = len(nodes)
            if follows:
                on_path.add(len(nodes))
            nodes.append(TreeNode(number, parent, piece(token), total, bool(step.finished[0, slot]), follows))
        above = places
    return nodes


def facts(predictor: Predictor, *searches: Any) -> dict[str, str]:
    """Small facts of the model, and how wide the search was that answers, and that for the other outputs."""
    widths = dict.fromkeys(str(search.beam_size) for search in searches)
    recipe = predictor.recipe
    parameters = sum(value.numel() for value in predictor.model.parameters())
    described = {
        "run": predictor.path.name if predictor.path else "",
        "encoder": recipe.get("encoder", {}).get("type", ""),
        "decoder": recipe["decoder"]["type"],
        "attention": recipe["decoder"].get("attention", {}).get("type", ""),
        "parameters": f"{parameters:,}",
        "beam": ", for the others ".join(widths),
    }
    return {name: value for name, value in described.items() if value}
