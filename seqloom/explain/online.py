"""Explanation of an online decoder: how much had been read when each token was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom.contracts import Decoder
from seqloom.explain.alternatives import allowed_tokens, answer_first, build_searches, likeliest
from seqloom.explain.facts import model_facts
from seqloom.explain.record import ExplainedHypothesis, Explanation, Matrix
from seqloom.inference.constraints import build_constraints, no_output
from seqloom.inference.system import System, pieces
from seqloom.nn.teacher_forcing import inputs_of
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.types import Hypothesis, Memory, Padded


@torch.no_grad()
def explain_online(system: System, source: Any, n_best: int, **settings: Any) -> Explanation:
    """The n_best outputs with their times, and the runners-up of each token."""
    model, task = system.model, system.task
    assert task.source is not None
    assert model.encoder is not None
    own, search = build_searches(system, n_best, **settings)
    assert isinstance(search, PrefixBeam)
    inputs = task.source.read(source)
    padded = Padded.stack([inputs]).to(model.device)
    memory = model.encode(padded)
    constraints = build_constraints(system, padded)
    start = search.start(model.decoder, memory, None, constraints)
    found = search.finish(model.decoder, memory, search.advance(model.decoder, memory, start))[0]
    if own is not search:
        found = answer_first(own(model.decoder, memory, None, constraints)[0], found, n_best)
    if not found:
        raise no_output(source)

    def piece(token: int) -> str:
        return "<eos>" if token == model.decoder.eos else pieces(task.target, [token])[0]

    first_constraints = replace(start.constraints, states=start.group.rows["constraints"])
    hypotheses = []
    for one in found:
        ids = [*one.tokens, model.decoder.eos or 0]
        rows = token_log_probs(model.decoder, memory, one)
        (allowed,) = allowed_tokens(first_constraints, inputs_of(model.decoder, [one]).to(model.device), len(rows[0]))
        possible = torch.stack(rows).masked_fill(~allowed, -torch.inf)
        times = [min(time * model.encoder.stride, len(inputs)) for time in one.times or []]
        hypotheses.append(
            ExplainedHypothesis(
                text=str(task.decode(one.tokens, source)),
                score=one.score,
                tokens=[piece(token) for token in ids],
                log_probs=[float(row[token]) for row, token in zip(rows, ids)],
                runners_up=[likeliest(row, token, piece) for row, token in zip(possible, ids)],
                times=[*times, float(len(inputs))],
            )
        )
    sound = task.source.seconds is not None and task.source.is_vectors
    bands: int = getattr(task.source, "mels", 0) or inputs.shape[-1]
    return Explanation(
        source=[] if sound else pieces(task.source, inputs),
        source_text=str(source) if isinstance(source, (str, bytes)) or not sound else "sound",
        hypotheses=hypotheses,
        model=model_facts(system, own, search),
        picture=spectrogram(inputs, bands) if sound else [],
        seconds=task.source.seconds or 0.0,
    )


def token_log_probs(decoder: Decoder, memory: Memory, one: Hypothesis) -> list[Tensor]:
    """Log-probabilities at each token and at the end, given that no blank is written there.  U + 1 times (V,)

    Feeds the hypothesis to the decoder, with blanks until as much has been read as its times say.
    """
    state, last, rows = decoder.start(memory), decoder.bos, []
    for token, time in zip([*one.tokens, decoder.eos or 0], [*(one.times or []), None]):
        while True:
            scores, state = decoder.step(torch.tensor([last], device=memory.lengths.device), state, memory)
            read = decoder.states_read(state, memory)
            if bool(scores[0, token] > -torch.inf) if time is None or read is None else int(read[0]) >= time:
                break
            last = decoder.blanks[0]
        without_blanks = scores[0].index_fill(0, torch.tensor(decoder.blanks, device=scores.device), -torch.inf)
        rows.append(without_blanks.log_softmax(0))
        last = token
    return rows


def spectrogram(inputs: np.ndarray, bands: int) -> Matrix:
    """Features of sound as energies from 0 to 1; stacked frames are averaged.  (T, n * bands) -> T x bands"""
    inputs = inputs.reshape(len(inputs), -1, bands).mean(1)
    low, high = np.quantile(inputs, [0.05, 0.995])
    return np.clip((inputs - low) / max(float(high - low), 1e-6), 0, 1).round(3).tolist()
