"""Explanation of a beam search: alignment, attention, runners-up, n-best list and beam tree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from seqloom.errors import SeqloomError
from seqloom.explain.alternatives import allowed_tokens, answer_first, build_searches, likeliest
from seqloom.explain.facts import encoder_experts, encoder_steps, model_facts
from seqloom.explain.image import source_image
from seqloom.explain.parse import branches
from seqloom.explain.points import source_points
from seqloom.explain.record import ExplainedHypothesis, Explanation, TreeNode
from seqloom.inference.constraints import build_constraints, no_output
from seqloom.inference.system import System, encode_source, pieces, source_pieces
from seqloom.nn.teacher_forcing import inputs_of, teacher_force
from seqloom.search.beam import Beam, BeamSearch
from seqloom.types import Padded

RUNNING_LENGTH = 40  # tokens of a running text, which has no end of its own
DETAILED = 2  # hypotheses with the attention of every layer and head: more would make pages of many megabytes


@torch.no_grad()
def explain_beam(system: System, source: Any, n_best: int, truth: Any = None, **settings: Any) -> Explanation:
    """Explain one input; `truth` are the true places of points in the plane."""
    model, task = system.model, system.task
    if (source is None) != (task.source is None):
        raise SeqloomError("explain: a language model takes no source, any other model takes one")
    points = source_points(task, source, truth)
    if task.running:
        settings.setdefault("maximum_length", min(task.window, RUNNING_LENGTH))
    own, search = build_searches(system, n_best, **{"type": "beam", **settings})
    assert isinstance(search, BeamSearch)
    tokens = None if task.source is None else encode_source(system, source)[0]
    padded = None if tokens is None else Padded.stack([tokens]).to(model.device)
    memory = model.encode(padded, 1, attention=True)
    constraints = build_constraints(system, padded)
    start = search.start(model.decoder, memory, None, constraints)
    beam = search.advance(model.decoder, memory, start)
    found = search.finish(model.decoder, memory, beam)[0]
    if own is not search:
        found = answer_first(own(model.decoder, memory, None, constraints)[0], found, n_best)
    if not found:
        raise no_output(source)

    def piece(token: int) -> str:
        if task.running and token == task.bos:
            return "⏎"
        return "<eos>" if token == model.decoder.eos else pieces(task.target, [token], source)[0]

    forced = teacher_force(model.decoder, memory, 0, found)
    inputs = inputs_of(model.decoder, found).to(model.device)
    allowed = allowed_tokens(start.constraints, inputs, forced[0].log_probs.shape[1])
    hypotheses = []
    for rank, (one, each) in enumerate(zip(found, forced)):
        ids = [*one.tokens, *([] if model.decoder.eos is None else [model.decoder.eos])]
        possible = each.log_probs.masked_fill(~allowed[rank, : len(ids)], -torch.inf)
        hypotheses.append(
            ExplainedHypothesis(
                text=task.target.line(task.decode(one.tokens, source)),
                score=one.score,
                tokens=[piece(token) for token in ids],
                log_probs=[float(row[token]) for row, token in zip(each.log_probs, ids)],
                runners_up=[likeliest(row, token, piece) for row, token in zip(possible, ids)],
                alignment=each.alignment,
                source_attention=each.source_attention if rank < DETAILED else [],
                self_attention=each.self_attention if rank < DETAILED else [],
                steps=each.steps,
                copied=each.copied,
                experts=each.experts,
                parse=branches(task, one.tokens, source),
            )
        )
    inner, image = memory.extra.get("attention"), source_image(system, tokens)
    places: list[str] = []
    if tokens is not None:
        places = image.places if image else source_pieces(task.source, tokens, source, memory.states.shape[1])
    return Explanation(
        source=places,
        source_text="" if source is None else source if task.source is None else task.source.line(source),
        hypotheses=hypotheses,
        tree=beam_tree(beam, piece, [*found[0].tokens, model.decoder.eos]),
        encoder_attention=[] if inner is None else inner[0].tolist(),
        image=image,
        points=points and replace(points, outputs=[task.decode(one.tokens, source) for one in found]),
        steps=encoder_steps(memory),
        experts=encoder_experts(memory),
        model=model_facts(system, own, search),
    )


def beam_tree(beam: Beam, piece: Any, best: list[int | None]) -> list[TreeNode]:
    """Every hypothesis that the beam kept, step by step; the path of the tokens `best` is marked."""
    nodes: list[TreeNode] = []
    parents: dict[int, int] = {}  # slot of the previous step -> its node
    on_path: set[int] = set()
    for number, step in enumerate(beam.steps):
        slots: dict[int, int] = {}
        for slot, total in enumerate(step.totals[0].tolist()):
            if total == float("-inf"):
                continue
            token, parent = int(step.tokens[0, slot]), parents.get(int(step.parents[0, slot]), -1)
            follows = (parent in on_path or number == 0) and number < len(best) and token == best[number]
            slots[slot] = len(nodes)
            if follows:
                on_path.add(len(nodes))
            nodes.append(TreeNode(number, parent, piece(token), total, bool(step.finished[0, slot]), follows))
        parents = slots
    return nodes
