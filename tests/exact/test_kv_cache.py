"""The KV cache against a full forward: whatever a search does to its rows, the next scores are the same."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.layers.kv_cache import LEAST_ROOM, KVCache
from seqloom.types import Padded, hold, select
from tests.building import VOCABULARY, build, memory_for

SIZE, SOURCES = 8, (5, 3, 6)


def decoder(memory_size=SIZE):
    return build(Transformer, memory_size=memory_size, layers=2)


def tokens(rows, generator):
    return torch.randint(4, VOCABULARY, (rows,), generator=generator)


class Rows:
    """Rows with their state, and all their tokens so far, from which a full forward computes the expected scores."""

    def __init__(self, decoder, memory, rows_each, seed):
        self.decoder, self.memory = decoder, memory
        self.generator = torch.Generator().manual_seed(seed)
        owner = memory.owner(memory.rows * rows_each)
        self.state = select(decoder.start(memory), owner)
        self.given = torch.zeros(len(owner), 0, dtype=torch.long)

    def step(self):
        token = tokens(len(self.given), self.generator)
        logits, self.state = self.decoder.step(token, self.state, self.memory)
        self.given = torch.cat([self.given, token[:, None]], dim=1)
        lengths = torch.full((len(self.given),), self.given.shape[1])
        expected = self.decoder(self.memory, Padded(self.given, lengths)).scores[:, -1]
        torch.testing.assert_close(logits, expected)

    def rerank(self):
        """Each row continues any row of its source."""
        each = len(self.given) // self.memory.rows
        parents = torch.randint(each, (len(self.given),), generator=self.generator)
        self.take(self.memory.owner(len(self.given)) * each + parents)

    def leave(self):
        """One source is finished and leaves."""
        if self.memory.rows > 1:
            each = len(self.given) // self.memory.rows
            gone = int(torch.randint(self.memory.rows, (), generator=self.generator))
            keep = torch.tensor([row for row in range(self.memory.rows) if row != gone])
            self.memory = self.memory.select(keep)
            self.take((keep[:, None] * each + torch.arange(each)).flatten())

    def shuffle(self):
        """Rows in any order, each with its own copy of the source."""
        rows = torch.randperm(len(self.given), generator=self.generator)
        self.memory = self.memory.select(self.memory.owner(len(self.given))[rows])
        self.take(rows)

    def take(self, rows):
        self.state, self.given = select(self.state, rows), self.given[rows]


@pytest.mark.parametrize("memory_size", [SIZE, 0])
@given(
    rows_each=st.integers(1, 3),
    actions=st.lists(st.sampled_from(["step", "rerank", "step", "leave", "shuffle"]), max_size=12),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
@torch.no_grad()
def test_scores_with_a_cache_equal_those_of_a_full_forward(memory_size, rows_each, actions, seed):
    rows = Rows(decoder(memory_size), memory_for(decoder(memory_size), SOURCES), rows_each, seed)
    for action in ("step", *actions, "step"):
        getattr(rows, action)()


@torch.no_grad()
def test_a_cache_stays_right_and_small_when_its_buffer_is_full():
    ours = decoder()
    rows = Rows(ours, memory_for(ours, SOURCES), 3, seed=3)
    for _ in range(3 * LEAST_ROOM):
        rows.step()
        rows.rerank()
    cache = rows.state["cache"]
    # rows of a source soon share a prefix: without sharing, 48 steps of 3 rows would be 144 nodes
    assert cache.nodes < 3 * LEAST_ROOM + 3 * LEAST_ROOM + 10 < 3 * 3 * LEAST_ROOM
    assert cache.buffer.layers[0].shape[3] == cache.buffer.capacity < 144


@torch.no_grad()
def test_reranking_and_further_steps_copy_no_keys():
    ours = decoder()
    rows = Rows(ours, memory_for(ours, SOURCES), 3, seed=3)
    rows.step()
    rows.step()
    buffer = rows.state["cache"].buffer
    for _ in range(5):
        rows.rerank()
        rows.step()
    assert rows.state["cache"].buffer is buffer


@torch.no_grad()
def test_rows_can_hold_their_cache():
    ours, generator = decoder(), torch.Generator().manual_seed(1)
    memory = memory_for(ours, SOURCES)
    first, second, third = (tokens(3, generator) for _ in range(3))
    _, before = ours.step(first, ours.start(memory), memory)
    _, after = ours.step(second, before, memory)
    mask = torch.tensor([False, True, False])
    logits, _ = ours.step(third, hold(mask, after, before), memory)
    held, _ = ours.step(third, before, memory)
    continued, _ = ours.step(third, after, memory)
    torch.testing.assert_close(logits, torch.where(mask[:, None], held, continued))


def test_steps_with_and_without_gradients_can_alternate():
    ours, generator = decoder(), torch.Generator().manual_seed(3)
    memory = memory_for(ours, SOURCES)
    state, logits = ours.start(memory), []
    given = torch.stack([tokens(3, generator) for _ in range(5)], dim=1)
    for position, gradients in enumerate([True, False, True, False, False]):
        with torch.set_grad_enabled(gradients):
            scores, state = ours.step(given[:, position], state, memory)
            logits.append(scores)
    expected = ours(memory, Padded(given, torch.full((3,), 5))).scores
    torch.testing.assert_close(torch.stack(logits, dim=1), expected)
    logits[2].sum().backward()


@torch.no_grad()
def test_prefixes_of_different_lengths():
    ours, generator = decoder(), torch.Generator().manual_seed(2)
    memory, lengths = memory_for(ours, SOURCES), torch.tensor([4, 1, 3])
    prefix = torch.randint(4, VOCABULARY, (3, 4), generator=generator)
    state = select(ours(memory, Padded(prefix, lengths), ours.start(memory)).state, torch.arange(6) // 2)
    token = tokens(6, generator)
    logits, _ = ours.step(token, state, memory)
    for row in range(6):
        whole = torch.cat([prefix[row // 2, : lengths[row // 2]], token[row : row + 1]])[None]
        alone = ours(memory.select(torch.tensor([row // 2])), Padded(whole, torch.tensor([whole.shape[1]])))
        torch.testing.assert_close(logits[row], alone.scores[0, -1])


def test_an_empty_cache_has_no_nodes():
    assert KVCache.empty(3, torch.device("cpu")).nodes == 0
