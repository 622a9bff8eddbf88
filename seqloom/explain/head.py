"""Explanation of a head that answers with one token: its attention, and the other likely answers."""

from __future__ import annotations

from typing import Any

import torch

from seqloom.errors import SeqloomError, shown
from seqloom.explain.alternatives import likeliest
from seqloom.explain.facts import encoder_steps, model_facts
from seqloom.explain.record import ExplainedHypothesis, Explanation
from seqloom.inference.answers import head_output, ranked
from seqloom.inference.system import System, pieces
from seqloom.types import Padded


@torch.no_grad()
def explain_head(system: System, source: Any, n_best: int, **settings: Any) -> Explanation:
    """The likeliest answers, and the attention over sentences or words, which is the same for all of them."""
    model, task = system.model, system.task
    if source is None or task.source is None or task.target.vocabulary is None:
        raise SeqloomError("explain shows choices between tokens, and this run outputs numbers at once: use `predict`")
    if settings:
        raise SeqloomError(f"this run answers at once, without a search: leave out {', '.join(settings)}")
    tokens = task.source.read(source)
    memory = model.encode(Padded.stack([tokens]).to(model.device), attention=True)
    output = head_output(system, memory, attention=True)
    log_probs = output.scores[0].log_softmax(-1)  # (1, V)
    attention = output.attention.get("source")  # (1, layers, heads, 1, T); the layers of a memory network are its hops
    words = memory.parts.get("tokens")
    best = [(score, token) for score, answer in ranked(log_probs[0].cpu().numpy(), n_best) for token in answer.tolist()]
    if not best:
        raise SeqloomError(f"no answer for {shown(source)}: none of its words is a possible answer of this run")

    def piece(token: int) -> str:
        return pieces(task.target, [token])[0]

    hypotheses = [
        ExplainedHypothesis(
            text=str(task.decode([token], source)),
            score=score,
            tokens=[piece(token)],
            log_probs=[score],
            runners_up=[likeliest(log_probs[0], token, piece)],
            alignment=[] if attention is None else attention[0].mean((0, 1)).tolist(),
            source_attention=[] if attention is None else attention[0].tolist(),
        )
        for score, token in best
    ]
    return Explanation(
        source=pieces(task.source, tokens if words is None else words.states[0].cpu()),
        source_text=task.source.line(source),
        hypotheses=hypotheses,
        steps=encoder_steps(memory),
        model=model_facts(system),
    )
