"""One model for several tasks: what is shared, what is not, and whose batches an epoch has."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from seqloom.config.settings import Settings
from seqloom.data.special_tokens import BOS, EOS
from seqloom.nn.decoders.recurrent import Recurrent as RecurrentDecoder
from seqloom.nn.decoders.transformer import Transformer as TransformerDecoder
from seqloom.nn.encoders.memory_network import MemoryNetwork
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.nn.heads.label import Label
from seqloom.nn.heads.word import Word
from seqloom.nn.model import Model
from seqloom.nn.multi_task import MultiTask
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.storage.weights import weights_of
from seqloom.tasks.pairs import Pairs
from seqloom.train.multi_task import Corpora, EachTask, Tasks
from seqloom.train.optimiser import NamedOptimiser
from seqloom.train.training import Training
from seqloom.types import Batch, Padded

SMALL = {"size": 8, "layers": 1, "heads": 2, "hidden": 16, "dropout": 0.0}
SOURCES = {"letters": {"vocabulary": 11}, "words": {"vocabulary": 7}, "vectors": {"features": 3}}
TARGETS = {"letters": 6, "words": 9, "vectors": 6}


def transformers(**changes):
    torch.manual_seed(1)
    return {
        name: Model(
            TransformerEncoder(**given, **SMALL),
            TransformerDecoder(
                vocabulary=TARGETS[name], memory_size=8, bos=BOS, eos=EOS, **SMALL | changes.get(name, {})
            ),
        ).double()
        for name, given in SOURCES.items()
    }


def batch(name):
    torch.manual_seed(2)
    shape, lengths = (2, 4), torch.tensor([4, 2])
    values = torch.randn(*shape, 3).double() if name == "vectors" else torch.randint(4, 7, shape)
    tokens = torch.randint(4, 6, shape)
    inputs = torch.cat([torch.full((2, 1), BOS), tokens[:, :-1]], dim=1)
    return Batch(Padded(values, lengths), Padded(inputs, lengths), Padded(tokens, lengths), task=name)


@pytest.fixture
def model():
    return MultiTask(transformers()).train()


def losses_of(model):
    return EachTask({name: CrossEntropy() for name in SOURCES}).train()


def names_of_modality_nets(model, task):
    """Those of the embeddings and outputs of one task."""
    return {
        name
        for name, _ in model.named_parameters()
        if name.startswith(f"models.{task}.") and name.split(".")[3] in ("embedding", "output")
    }


def test_all_but_embeddings_and_outputs_is_one_module_in_all_tasks(model):
    first, *others = model.models.values()
    for other in others:
        for part in ("encoder", "decoder"):
            ours, theirs = getattr(first, part), getattr(other, part)
            assert ours.embedding is not theirs.embedding
            assert ours.layers is theirs.layers
            assert ours.norm is theirs.norm
    own = sum(len(names_of_modality_nets(model, task)) for task in SOURCES)
    body = len(list(first.parameters())) - len(names_of_modality_nets(model, "letters"))
    assert len(list(model.parameters())) == own + body
    assert len(weights_of(model)) == len(list(model.parameters()))  # stored once


@pytest.mark.parametrize("task", SOURCES)
def test_a_batch_of_one_task_leaves_the_modality_nets_of_others_alone(model, task):
    training = Training(model, losses_of(model))
    optimiser = NamedOptimiser(training, Settings(weight_decay=0.1, learning_rate=0.1))
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    training(batch(task)).total.backward()
    optimiser.step(0.1)
    foreign = {name for other in SOURCES if other != task for name in names_of_modality_nets(model, other)}
    assert foreign
    for name, value in model.named_parameters():
        if name in foreign:
            assert value.grad is None
            assert torch.equal(value, before[name])  # weight decay leaves it alone, too
            assert value not in optimiser.torch.state
        else:
            assert not torch.equal(value, before[name]), name


def test_each_task_is_the_model_it_would_be_alone():
    """The shared model of a task computes what a plain model with the same weights does."""
    together, alone = MultiTask(transformers()).eval(), transformers()
    for name, plain in alone.items():
        plain.load_state_dict(together.of(name).state_dict())
        assert torch.equal(plain.eval()(batch(name)).scores, together.of(name)(batch(name)).scores)


@torch.no_grad()
def test_the_task_token_switches_the_output(model):
    """The same memory and the same body: only the first input, BOS of each task, and the output differ."""
    model.eval()
    memory = model.of("letters").encode(batch("letters").source)
    inputs = Padded(torch.full((2, 1), BOS), torch.ones(2, dtype=torch.long))
    hidden = {name: model.of(name).decoder(memory, inputs) for name in ("letters", "vectors")}
    assert not torch.allclose(hidden["letters"].hidden, hidden["vectors"].hidden)
    ours, theirs = (model.of(name).decoder for name in ("letters", "vectors"))
    theirs.embedding.weight[BOS] = ours.embedding.weight[BOS]
    assert torch.equal(theirs(memory, inputs).hidden, hidden["letters"].hidden)


def test_heads_stay_apart_and_share_the_encoder():
    encoders = [RecurrentEncoder(vocabulary=size, embedding_size=4, size=6) for size in (8, 9)]
    heads = [Label(vocabulary=3, memory_size=6), Label(vocabulary=3, memory_size=6)]
    one, other = (Model(encoder, head) for encoder, head in zip(encoders, heads))
    MultiTask({"one": one, "other": other})
    shared = {id(value) for value in one.encoder.parameters()} & {id(value) for value in other.encoder.parameters()}
    assert len(shared) == len(list(one.encoder.parameters())) - 1  # all but the embedding
    assert one.decoder.output is not other.decoder.output


def test_what_cannot_be_shared_is_refused():
    with pytest.raises(
        ValueError, match="decoder: tasks letters and words cannot share a body: layers has other sizes"
    ):
        MultiTask(transformers(words={"hidden": 32}))
    apart = {
        name: Model(MemoryNetwork(vocabulary=9, pad=0, size=6), Word(vocabulary=9, memory_size=6, pad=0))
        for name in ("one", "other")
    }
    with pytest.raises(ValueError, match="no two tasks share an encoder or a decoder"):
        MultiTask(apart)


def test_recurrent_decoders_share_all_but_embedding_and_output():
    models = {
        name: Model(
            RecurrentEncoder(vocabulary=9, embedding_size=4, size=6),
            RecurrentDecoder(vocabulary=size, memory_size=6, bos=BOS, eos=EOS, embedding_size=4, size=6),
        )
        for name, size in (("one", 5), ("other", 8))
    }
    MultiTask(models)
    one, other = (model.decoder for model in models.values())
    shared = {id(value) for value in one.parameters()} & {id(value) for value in other.parameters()}
    own = {name for name, value in other.named_parameters() if id(value) not in shared}
    assert own == {"embedding.weight", "output.weight", "output.bias"}


# -- batches


class Rows:
    """A corpus of one token each."""

    def __init__(self, count, first):
        self.lengths = np.full((count, 2), 3, dtype=np.int32)
        self.values = [np.full(3, first + row) for row in range(count)]

    def __len__(self):
        return len(self.values)

    def __getitem__(self, row):
        return self.values[row], self.values[row]


class Side:
    """What a task asks of a codec."""

    vocabulary, features, chooses, nested, names_files, augment = 1000, None, "", "", False, None
    is_vectors = False


def tasks(**shares):
    plain = {name: Pairs(source=Side(), target=Side()) for name in shares}
    return Tasks(plain, shares)


CORPORA = Corpora({"few": Rows(10, 100), "many": Rows(90, 200)})


def names_in(plan):
    """How many batches of each task, each of one task alone."""
    found = {"few": 0, "many": 0}
    for number in range(len(plan)):
        name, rows = CORPORA.find(plan[number])
        assert {CORPORA.find(np.array([row]))[0] for row in plan[number]} == {name}
        assert rows.min() >= 0
        assert rows.max() < len(CORPORA.parts[name])
        found[name] += 1
    return found


def test_without_shares_an_epoch_has_every_example_once():
    plan = tasks(few=None, many=None).plan(CORPORA.lengths, 8, 1, 0)
    assert sorted(plan.rows.tolist()) == list(range(100))
    assert names_in(plan)["many"] > 5 * names_in(plan)["few"]


@pytest.mark.parametrize(("share", "of_few"), [(1, 0.5), (3, 0.75), (1 / 9, 0.1)])
def test_shares_are_shares_of_the_batches(share, of_few):
    natural = len(tasks(few=None, many=None).plan(CORPORA.lengths, 8, 1, 0))
    found = names_in(tasks(few=share, many=1).plan(CORPORA.lengths, 8, 1, 0))
    assert sum(found.values()) == pytest.approx(natural, abs=1)
    assert found["few"] / natural == pytest.approx(of_few, abs=1 / natural)


def test_a_plan_is_a_pure_function_of_seed_and_epoch_and_mixes_the_tasks():
    made = tasks(few=1, many=1)
    once, again, later = (made.plan(CORPORA.lengths, 8, 1, epoch) for epoch in (0, 0, 1))
    assert np.array_equal(once.rows, again.rows)
    assert not np.array_equal(once.rows, later.rows)
    kinds = [CORPORA.find(once[number])[0] for number in range(len(once))]
    assert sum(a != b for a, b in pairwise(kinds)) > 3  # not one task after the other


def test_validation_has_every_row_once_and_no_mixed_batch():
    plan = tasks(few=5, many=1).in_order(CORPORA.lengths, 8)
    assert sorted(plan.rows.tolist()) == list(range(100))
    names_in(plan)


def test_a_row_is_that_of_its_corpus_and_a_batch_names_its_task():
    assert CORPORA[3][0].tolist() == [103] * 3
    assert CORPORA[12][0].tolist() == [202] * 3
    made = tasks(few=None, many=None).collate(CORPORA, np.array([10, 11]))
    assert made.task == "many"
    assert made.examples == (10, 11)
    assert made.source.values.tolist() == [[200] * 3, [201] * 3]
