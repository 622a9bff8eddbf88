"""Explanation of a head: the likeliest answers, or the tag of each token, with their probabilities and attention."""

from __future__ import annotations

from typing import Any

import torch

from seqloom.data.special_tokens import SPECIAL
from seqloom.errors import SeqloomError, shown
from seqloom.explain.alternatives import likeliest
from seqloom.explain.facts import encoder_experts, encoder_steps, model_facts
from seqloom.explain.record import ExplainedHypothesis, Explanation
from seqloom.inference.answers import after_bos, answers_of, head_output
from seqloom.inference.system import System, pieces
from seqloom.types import Padded


@torch.no_grad()
def explain_head(system: System, source: Any, n_best: int, **settings: Any) -> Explanation:
    """The likeliest answers; their attention over sentences or words is the same for all of them."""
    model, task = system.model, system.task
    if source is None or task.source is None or task.target.vocabulary is None:
        raise SeqloomError("explain shows choices between tokens, and this run outputs numbers at once: use `predict`")
    if settings:
        raise SeqloomError(f"this run answers at once, without a search: leave out {', '.join(settings)}")
    read = task.source.read(source)
    memory = model.encode(Padded.stack([read]).to(model.device), attention=True)
    words = memory.parts.get("tokens")

    def piece(token: int) -> str:
        return pieces(task.target, [token])[0]

    def explained(tokens: list[int], log_probs: list[float]) -> ExplainedHypothesis:
        answer = Padded.stack([torch.tensor(tokens, device=model.device)])
        output = head_output(system, memory, after_bos(system, answer), attention=True)
        attention = output.attention.get("source")  # (1, layers, heads, U, T); a memory network's layers are its hops
        positions = output.scores[0].log_softmax(-1)  # (U, V)
        positions[:, : len(SPECIAL)] = -torch.inf  # these are no answers
        return ExplainedHypothesis(
            text=str(task.decode(tokens, source)),
            score=sum(log_probs),
            tokens=[piece(token) for token in tokens],
            log_probs=log_probs,
            runners_up=[likeliest(each, token, piece) for each, token in zip(positions, tokens)],
            alignment=[] if attention is None else attention[0].mean((0, 1)).tolist(),
            source_attention=[] if attention is None else attention[0].tolist(),
        )

    best = [(answer.tolist(), scores) for scores, answer in answers_of(system, memory, n_best)[0]]
    hypotheses = [explained(tokens, scores) for tokens, scores in best if tokens]
    if not hypotheses:
        raise SeqloomError(f"no answer for {shown(source)}: none of its words is a possible answer of this run")
    return Explanation(
        source=pieces(task.source, read if words is None else words.states[0].cpu()),
        source_text=task.source.line(source),
        hypotheses=hypotheses,
        steps=encoder_steps(memory),
        experts=encoder_experts(memory),
        model=model_facts(system),
        per_token=task.per_token,
    )
