"""What there is to see of a head that says one symbol: where it looked, hop by hop, and what else was likely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from seqloom.answering import ranked
from seqloom.errors import SeqloomError, shown
from seqloom.explain.explanation import ExplainedHypothesis, Explanation
from seqloom.explain.reading import facts, likeliest, steps_at
from seqloom.types import Padded

if TYPE_CHECKING:
    from seqloom.predict import Predictor


@torch.no_grad()
def explain_head(predictor: Predictor, source: Any, n_best: int, **settings: Any) -> Explanation:
    """The likeliest answers, and the attention behind them, which is the same for all: to sentences, or to words."""
    model, task = predictor.model, predictor.task
    if source is None or task.source is None or task.target.vocabulary is None:
        raise SeqloomError("explain shows choices, and this run says numbers at once: use `predict`")
    if settings:
        raise SeqloomError(f"this run says its output at once, without a search: leave out {', '.join(settings)}")
    read = task.source.read(source)
    memory = model.encode(Padded.stack([read]).to(predictor.device), attention=True)
    output = predictor.said(model.decoder, memory, attention=True)
    log_probs = output.scores[0].log_softmax(-1)  # (1, V)
    looks = output.attention.get("source")  # (1, hops, heads, 1, T)
    words = memory.parts.get("symbols")
    best = [(score, token) for score, symbol in ranked(log_probs[0].cpu().numpy(), n_best) for token in symbol.tolist()]
    if not best:
        raise SeqloomError(f"no answer for {shown(source)}: none of its words is one that this run could say")

    def piece(token: int) -> str:
        return predictor.pieces(task.target, [token])[0]

    hypotheses = [
        ExplainedHypothesis(
            text=str(task.decode([token], source)),
            score=score,
            tokens=[piece(token)],
            log_probs=[score],
            runners_up=[likeliest(log_probs[0], token, piece)],
            alignment=[] if looks is None else looks[0].mean((0, 1)).tolist(),
            source_attention=[] if looks is None else looks[0].tolist(),
        )
        for score, token in best
    ]
    return Explanation(
        source=predictor.pieces(task.source, read if words is None else words.states[0].cpu()),
        source_text=task.source.line(source),
        hypotheses=hypotheses,
        steps=steps_at(memory),
        model=facts(predictor),
    )
