"""`text_choose`: probabilities against the oracle, temperature groups, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import uform
from tests.oracle import Configuration, Oracle

CONFIGURATION = Configuration(
    depth=2, hidden=128, head_dimension=64, width=384, dimensions=32, context=64, choice_temperature_groups=3
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("models") / "choices.safetensors")
    oracle = Oracle.random(CONFIGURATION, seed=5)
    with torch.no_grad():
        oracle.heads.inverse_temperatures.copy_(torch.tensor([1.0, 0.25, 3.0]))
    oracle.save(path)
    return path


@pytest.fixture(scope="module")
def model(path: str) -> uform.Model:
    return uform.Model.load_ram(path)


TEXTS = ["keep this candidate? ", "expand which neighbour? ", "", "one letter: "]
CHOICES = ["yn", "ABCD", "01", "z"]


@pytest.mark.parametrize("groups", [None, [0, 1, 2, 0], np.array([2, 0, 1, 1], np.uint32), [1, 1, 1, 1]])
def test_probabilities_agree_with_the_oracle(model: uform.Model, path: str, groups: object) -> None:
    stats = uform.TextEncodeStats()
    probabilities = model.text_choose(TEXTS, CHOICES, uform.Arena(), temperature_groups=groups, stats=stats)
    values, offsets = np.array(probabilities), np.asarray(probabilities.offsets)
    assert offsets.tolist() == [0, 2, 6, 8, 9]
    assert values.dtype == np.float32
    assert values.shape == (9,)
    assert (stats.truncated_items, stats.encoded_tokens) == (0, sum(map(len, TEXTS)) + len(TEXTS))

    oracle = Oracle.from_checkpoint(path, dtype=torch.float64)
    numbers = [0] * 4 if groups is None else [int(group) for group in groups]
    expected = oracle.choose([text.encode() for text in TEXTS], [choice.encode() for choice in CHOICES], numbers)
    for index, reference in enumerate(expected):
        row = values[offsets[index] : offsets[index + 1]]
        assert np.allclose(row, np.asarray(reference), atol=0.02)
        assert np.isclose(row.sum(), 1, atol=1e-6)


def test_an_order_of_choices_is_kept(model: uform.Model) -> None:
    forward = np.array(model.text_choose(["which? "], ["ABCD"], uform.Arena()))
    backward = np.array(model.text_choose(["which? "], ["DCBA"], uform.Arena()))
    assert np.array_equal(forward, backward[::-1])


def test_forms_of_choices(model: uform.Model) -> None:
    expected = np.array(model.text_choose(["a", "b"], ["yn", "AB"], uform.Arena()))
    tape = (b"ynAB", np.array([0, 2, 4], np.uint64))
    for choices in ([b"yn", b"AB"], (bytearray(b"yn"), "AB"), tape):
        assert np.array_equal(np.array(model.text_choose(["a", "b"], choices, uform.Arena())), expected)


def test_the_same_bits_alone_and_on_threads(model: uform.Model) -> None:
    texts = [f"question {index}: " * (index % 3 + 1) for index in range(40)]
    choices = ["yn" if index % 2 else "ABCDEFGH" for index in range(40)]
    groups = [index % 3 for index in range(40)]
    alone = [
        np.array(model.text_choose([text], [legal], uform.Arena(), temperature_groups=[group]))
        for text, legal, group in zip(texts, choices, groups, strict=True)
    ]
    for threads in (1, 2, 3):
        executor = uform.Executor.for_ram(threads)
        together = model.on(executor).text_choose(texts, choices, uform.Arena(), temperature_groups=groups)
        assert np.array_equal(np.asarray(together), np.concatenate(alone))
        deferred = model.deferred(executor).text_choose(texts, choices, uform.Arena(), temperature_groups=groups)
        assert np.array_equal(np.asarray(deferred.wait()), np.concatenate(alone))


def test_probabilities_do_not_tie(model: uform.Model) -> None:
    """They are F32, whatever outputs' scalar others have: BF16 would tie neighbours among 200 choices."""
    legal = bytes(range(32, 232))
    values = np.array(model.text_choose(["which byte? "], [legal], uform.Arena()))
    assert len(np.unique(values)) > 190


def test_truncation_leaves_room_for_the_question(model: uform.Model) -> None:
    stats, context = uform.TextEncodeStats(), CONFIGURATION.context
    text = b"q" * (context + 5)
    values = np.array(model.text_choose([text, text[: context - 1]], ["yn", "yn"], uform.Arena(), stats=stats))
    assert (stats.truncated_items, stats.encoded_tokens) == (1, 2 * context)
    assert np.array_equal(values[:2], values[2:])


def test_empty_batch(model: uform.Model) -> None:
    probabilities = model.text_choose([], [], uform.Arena())
    assert np.asarray(probabilities).shape == (0,)
    assert np.asarray(probabilities.offsets).tolist() == [0]


REFUSED = {
    "no choices": ({"choices": ["yn", ""]}, uform.InvalidArgumentError, 1, "choices"),
    "a choice twice": ({"choices": ["yn", "AA"]}, uform.InvalidArgumentError, 1, "choices"),
    "not a single byte": ({"choices": ["yn", "é"]}, uform.InvalidArgumentError, 1, "single byte"),
    "a list of choices": ({"choices": ["yn", ["yes", "no"]]}, uform.InvalidArgumentError, 1, "choices"),
    "wrong type": ({"choices": ["yn", 3]}, uform.InvalidArgumentError, 1, "choices"),
    "too few": ({"choices": ["yn"]}, uform.ShapeMismatchError, None, "choices"),
    "a group too high": ({"temperature_groups": [0, 3]}, uform.InvalidArgumentError, 1, "temperature_groups"),
    "a negative group": ({"temperature_groups": [-1, 0]}, uform.InvalidArgumentError, 0, "temperature_groups"),
    "a group of another type": ({"temperature_groups": [0, "1"]}, uform.InvalidArgumentError, 1, "temperature_groups"),
    "groups of the wrong length": ({"temperature_groups": [0]}, uform.ShapeMismatchError, None, "temperature_groups"),
    "no groups at all": ({"temperature_groups": []}, uform.ShapeMismatchError, None, "temperature_groups"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals(model: uform.Model, name: str) -> None:
    changed, error, item, words = REFUSED[name]
    arguments = {"texts": ["a", "b"], "choices": ["yn", "AB"]} | changed
    arena = uform.Arena()
    before = model.text_choose(["x"], ["yn"], arena)
    with pytest.raises(error, match=words) as caught:
        model.text_choose(arena=arena, **arguments)
    assert caught.value.item == item
    # A refusal changes nothing: the last call's outputs are still there.
    assert np.asarray(before).shape == (2,)
