"""Batches: sequences that are gathered, tapes that are lent, and everything that is neither."""

from __future__ import annotations

import array
import collections
import sys
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uform

TEXTS = ["a cat", "", "été", "日本語", "🦊 fox", "\0"]


def rows_of(model: uform.Model, texts: object, **options: object) -> np.ndarray:
    """A copy of the embeddings, on an arena of its own."""
    encoded = model.text_encode(texts, uform.Arena(), **options)  # type: ignore[arg-type]
    return np.array(encoded.embeddings)


def tape(texts: list[bytes], dtype: type = np.uint64) -> tuple[bytes, np.ndarray]:
    return b"".join(texts), np.cumsum([0, *map(len, texts)]).astype(dtype)


@pytest.fixture(scope="module")
def expected(model: uform.Model) -> np.ndarray:
    return rows_of(model, [text.encode() for text in TEXTS])


SEQUENCES = {
    "list of str": lambda: TEXTS,
    "tuple of str": lambda: tuple(TEXTS),
    "bytes": lambda: [text.encode() for text in TEXTS],
    "bytearray": lambda: [bytearray(text.encode()) for text in TEXTS],
    "memoryview": lambda: [memoryview(text.encode()) for text in TEXTS],
    "numpy bytes": lambda: [np.frombuffer(text.encode(), np.uint8) for text in TEXTS],
    "array": lambda: [array.array("B", text.encode()) for text in TEXTS],
    "mixed": lambda: [TEXTS[0], TEXTS[1].encode(), bytearray(TEXTS[2].encode()), *TEXTS[3:]],
    "numpy objects": lambda: np.array(TEXTS, dtype=object),
    "deque": lambda: collections.deque(TEXTS),
    "UserList": lambda: collections.UserList(TEXTS),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(model: uform.Model, expected: np.ndarray, name: str) -> None:
    assert np.array_equal(rows_of(model, SEQUENCES[name]()), expected)


def test_numpy_texts(model: uform.Model) -> None:
    assert np.array_equal(rows_of(model, np.array(["ab", "c"])), rows_of(model, ["ab", "c"]))


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uintp, np.ulonglong, np.dtype("<u8")])
def test_tapes(model: uform.Model, expected: np.ndarray, dtype: type) -> None:
    data, offsets = tape([text.encode() for text in TEXTS], dtype)
    assert np.array_equal(rows_of(model, (data, offsets)), expected)
    assert np.array_equal(rows_of(model, (bytearray(data), offsets)), expected)
    assert np.array_equal(rows_of(model, (np.frombuffer(data, np.uint8), memoryview(offsets))), expected)
    assert np.array_equal(rows_of(model, (data, array.array("Q", offsets.tolist()))), expected)


def test_outputs_are_lent_as_tapes(model: uform.Model) -> None:
    """Offsets that one call answered delimit the bytes of the next one's texts."""
    texts = ["abc", "de", ""]
    states = model.text_encode(texts, uform.Arena(), outputs=uform.Outputs.STATES).states
    assert states is not None
    assert np.array_equal(rows_of(model, (b"abcde", states.offsets)), rows_of(model, texts))


def test_no_texts(model: uform.Model, arena: uform.Arena) -> None:
    empty_tape = (b"", np.zeros(1, np.uint64))
    for nothing in ([], (), empty_tape, np.array([], dtype=object)):
        encoded = model.text_encode(nothing, arena, outputs=uform.Outputs(3))  # type: ignore[arg-type]
        assert np.asarray(encoded.embeddings).shape == (0, model.describe().dimensions)
        assert encoded.states is not None
        assert np.asarray(encoded.states.offsets).tolist() == [0]


def test_two_texts_are_no_tape(model: uform.Model) -> None:
    expected = rows_of(model, ["ab", "c"])
    for texts in (
        ("ab", "c"),
        (b"ab", b"c"),
        ("ab", b"c"),
        (bytearray(b"ab"), bytearray(b"c")),
        (memoryview(b"ab"), memoryview(b"c")),
        (b"ab", np.frombuffer(b"c", np.uint8)),
    ):
        assert np.array_equal(rows_of(model, texts), expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("text", "a sequence is needed, not a single str"),
        (b"text", "not a single bytes"),
        (bytearray(b"text"), "not a single bytearray"),
        (memoryview(b"text"), "not a single memoryview"),
        (5, "not int"),
        (None, "not NoneType"),
        ((text for text in TEXTS), "not generator"),
        ({"a": 1}, "not dict"),
        ({"a"}, "not set"),
        (np.array("text"), "not a numpy.ndarray without a length"),
        (["a", 5], "item 1 has to be str or bytes-like, not int"),
        (["a", None], "item 1 has to be str or bytes-like, not NoneType"),
        ([["a"]], "item 0 has to be str or bytes-like, not list"),
        ((b"ab", [0, 1, 2]), "item 1 has to be str or bytes-like, not list"),
        (("ab", np.array([0, 2], np.uint64)), "the data of the tape has to be a buffer, not str"),
    ],
)
def test_wrong_types(model: uform.Model, arena: uform.Arena, wrong: object, message: str) -> None:
    with pytest.raises(uform.ArgumentTypeError, match=message) as caught:
        model.text_encode(wrong, arena)  # type: ignore[arg-type]
    assert str(caught.value).startswith("texts: ")
    assert caught.value.item == (int(message.split()[1]) if message.startswith("item") else None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ((b"abcd", np.array([0, 2], np.uint32)), "offsets of the tape have to be integers of 8 bytes"),
        ((b"abcd", np.array([0.0, 2.0])), "offsets of the tape have to be integers of 8 bytes"),
        ((b"abcd", np.array([0, 2], ">u8")), "offsets of the tape have to be integers of 8 bytes"),
        ((b"abcd", np.array([0, 9, 2, 9], np.uint64)[::2]), "offsets of the tape: they have to be C-contiguous"),
        ((b"abcd", np.array([[0, 2]], np.uint64)), "offsets of the tape: one dimension is needed, not 2"),
        ((b"abcd", np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.uint64)), "aligned to 8 bytes"),
        ((np.frombuffer(b"abcd", np.uint8)[::2], np.array([0, 2], np.uint64)), "data of the tape has to be C-contig"),
        ((np.zeros(4, np.float32), np.array([0, 2], np.uint64)), "data of the tape has to be a buffer of bytes"),
        (["a", np.zeros(3, np.float32)], "an item has to be a buffer of bytes, not of 'f'"),
        (["a", np.zeros((2, 6), np.uint8)[:, ::2]], "an item has to be C-contiguous"),
        (["a", memoryview(b"abcd")[::2]], "an item has to be C-contiguous"),
        (np.frombuffer(b"abcd", np.uint8), "an item has to be a buffer of bytes"),
    ],
)
def test_wrong_layouts(model: uform.Model, arena: uform.Arena, wrong: object, message: str) -> None:
    with pytest.raises(uform.UnsupportedLayoutError, match=message) as caught:
        model.text_encode(wrong, arena)  # type: ignore[arg-type]
    assert caught.value.item == (None if isinstance(wrong, tuple) else (1 if isinstance(wrong, list) else 0))


@pytest.mark.parametrize(
    ("offsets", "item"),
    [([], None), ([1, 4], 0), ([0, 3, 2, 4], 1), ([0, 5], 0), ([0, 2, -1], 1), ([0, 1 << 63, 4], 0)],
)
def test_broken_tapes(model: uform.Model, arena: uform.Arena, offsets: list[int], item: int | None) -> None:
    numbers = np.array([number % (1 << 64) for number in offsets], np.uint64)
    before = np.array(model.text_encode(["kept"], arena).embeddings)
    kept = model.text_encode(["kept"], arena).embeddings
    with pytest.raises(uform.InvalidArgumentError, match="texts") as caught:
        model.text_encode((b"abcd", numbers), arena)
    assert caught.value.item == item
    assert np.array_equal(np.asarray(kept), before)


def test_lone_surrogates_are_named(model: uform.Model, arena: uform.Arena) -> None:
    with pytest.raises(uform.MalformedError, match=r"item 2 has a lone surrogate, U\+DC80 at index 1") as caught:
        model.text_encode(["a", "b", "c\udc80"], arena)
    assert caught.value.item == 2


def test_released_buffers(model: uform.Model, arena: uform.Arena) -> None:
    view = memoryview(b"abc")
    view.release()
    with pytest.raises(uform.InvalidArgumentError, match="released") as caught:
        model.text_encode(["a", view], arena)
    assert caught.value.item == 1
    assert isinstance(caught.value.__cause__, ValueError)


def test_stale_buffers_are_refused_as_such(model: uform.Model, arena: uform.Arena) -> None:
    states = model.text_encode(["abc"], arena, outputs=uform.Outputs.STATES).states
    assert states is not None
    offsets = states.offsets
    model.text_encode(["rewinds"], arena)
    with pytest.raises(uform.InvalidArgumentError, match="rewound"):
        model.text_encode((b"abc", offsets), uform.Arena())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(codec="utf-8")), max_size=6))
def test_utf8_is_pythons(model: uform.Model, texts: list[str]) -> None:
    stats, as_bytes = uform.TextEncodeStats(), uform.TextEncodeStats()
    assert np.array_equal(
        rows_of(model, texts, stats=stats), rows_of(model, [text.encode() for text in texts], stats=as_bytes)
    )
    assert stats.encoded_tokens == as_bytes.encoded_tokens


def test_inputs_are_released_afterwards(model: uform.Model, arena: uform.Arena) -> None:
    data, offsets = bytearray(b"abcd"), np.array([0, 1, 4], np.uint64)
    model.text_encode((data, offsets), arena)
    data.append(0)  # A buffer that is still exported refuses to be resized.
    item = bytearray(b"xyz")
    model.text_encode([item, "a"], arena)
    item.append(0)
    gone = weakref.ref(offsets)
    del offsets
    assert gone() is None
    text = "".join(["a", "cat"])
    before = sys.getrefcount(text)
    for _ in range(100):
        model.text_encode([text], arena)
    assert sys.getrefcount(text) < before + 10


def test_a_tape_is_read_where_it_lies(model: uform.Model) -> None:
    data, offsets = np.frombuffer(bytearray(b"abcd"), np.uint8), np.array([0, 2, 4], np.uint64)
    first = rows_of(model, (data, offsets))
    data[:2] = data[2:]
    second = rows_of(model, (data, offsets))
    assert np.array_equal(second[0], first[1])


@pytest.mark.parametrize("outputs", [-1, 8, 1 << 40])
def test_outputs_that_are_none(model: uform.Model, arena: uform.Arena, outputs: int) -> None:
    with pytest.raises(uform.InvalidArgumentError if outputs < 0 else uform.UnknownKindError, match="outputs"):
        model.text_encode(["a"], arena, outputs=outputs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [{"outputs": "all"}, {"stats": {}}, {"stats": 3}, {"progress": 5}, {"progress": "print"}],
    ids=lambda options: repr(options),
)
def test_options_of_wrong_types(model: uform.Model, arena: uform.Arena, options: dict[str, object]) -> None:
    with pytest.raises(uform.ArgumentTypeError, match=next(iter(options))):
        model.text_encode(["a"], arena, **options)  # type: ignore[arg-type]


def test_arguments_that_do_not_exist(model: uform.Model, arena: uform.Arena) -> None:
    with pytest.raises(TypeError):
        model.text_encode(["a"], arena, normalize=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        model.text_encode(["a"])  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        model.text_encode(["a"], arena, uform.Outputs.STATES)  # type: ignore[misc]


class TestChoices:
    @pytest.fixture(autouse=True)
    def _needs_a_byte_decoder(self, model: uform.Model) -> None:
        if not model.describe().choice_temperature_groups:
            pytest.skip("the checkpoint has no byte decoder")

    def test_forms(self, model: uform.Model) -> None:
        texts = ["keep? ", "which? "]

        def choose(choices: object) -> list[float]:
            probabilities = model.text_choose(texts, choices, uform.Arena())  # type: ignore[arg-type]
            assert np.asarray(probabilities.offsets).tolist() == [0, 2, 6]
            assert probabilities.scalar is uform.Scalar.F32
            assert probabilities.shape == (6,)
            values: list[float] = np.asarray(probabilities).tolist()
            return values

        expected = choose(["yn", "ABCD"])
        assert sum(expected[:2]) == pytest.approx(1)
        assert sum(expected[2:]) == pytest.approx(1)
        assert choose([b"yn", bytearray(b"ABCD")]) == expected
        assert choose((b"ynABCD", np.array([0, 2, 6], np.uint64))) == expected
        assert choose(("yn", "ABCD")) == expected

    def test_bytes_need_not_be_text(self, model: uform.Model, arena: uform.Arena) -> None:
        probabilities = np.asarray(model.text_choose(["?"], [bytes(range(256))], arena))
        assert probabilities.shape == (256,)
        assert probabilities.sum() == pytest.approx(1)

    @pytest.mark.parametrize(
        ("choices", "item", "message"),
        [
            (["y", "né"], 1, "item 1 has a character that is not a single byte"),
            (["y", ""], 1, "item 1 has none"),
            (["yy", "n"], 0, "item 0 has byte 121 twice"),
        ],
    )
    def test_refusals(
        self, model: uform.Model, arena: uform.Arena, choices: list[str], item: int, message: str
    ) -> None:
        with pytest.raises(uform.InvalidArgumentError, match=message) as caught:
            model.text_choose(["a", "b"], choices, arena)
        assert caught.value.item == item

    def test_as_many_as_texts(self, model: uform.Model, arena: uform.Arena) -> None:
        with pytest.raises(uform.ShapeMismatchError, match="choices: 1 items for 2 texts"):
            model.text_choose(["a", "b"], ["yn"], arena)
        for groups in ([], [0], np.zeros(0, np.uint32), np.zeros(3, np.uint32)):
            with pytest.raises(uform.ShapeMismatchError, match="temperature_groups: . items for 2 texts"):
                model.text_choose(["a", "b"], ["yn", "yn"], arena, temperature_groups=groups)  # type: ignore[arg-type]

    def test_temperature_groups(self, model: uform.Model) -> None:
        def choose(groups: object) -> np.ndarray:
            return np.array(
                model.text_choose(["a", "a"], ["yn", "yn"], uform.Arena(), temperature_groups=groups)  # type: ignore[arg-type]
            )

        groups = [0, model.describe().choice_temperature_groups - 1]
        expected = choose(groups)
        assert np.array_equal(choose(None), choose([0, 0]))
        assert np.array_equal(choose([0, 0])[:2], choose([0, 0])[2:])
        if groups[1]:
            assert not np.array_equal(expected[:2], expected[2:])
        for same in (tuple(groups), np.array(groups), np.array(groups, np.uint32), array.array("I", groups)):
            assert np.array_equal(choose(same), expected)

    def test_groups_that_are_none(self, model: uform.Model, arena: uform.Arena) -> None:
        limit = model.describe().choice_temperature_groups
        for wrong in (limit, -1, 1 << 32, 1 << 70):
            with pytest.raises(uform.InvalidArgumentError, match="temperature_groups") as caught:
                model.text_choose(["a", "b"], ["y", "n"], arena, temperature_groups=[0, wrong])
            assert caught.value.item == 1
        for groups in ("01", 3, [0, "1"], [0, 1.0]):
            with pytest.raises(uform.ArgumentTypeError, match="temperature_groups"):
                model.text_choose(["a", "b"], ["y", "n"], arena, temperature_groups=groups)  # type: ignore[arg-type]

    def test_stats_and_progress(self, model: uform.Model, arena: uform.Arena) -> None:
        stats, reports = uform.TextEncodeStats(), []
        context = model.describe().context
        model.text_choose(
            ["a" * (context - 1), "a" * context],
            ["yn", "yn"],
            arena,
            stats=stats,
            progress=lambda *report: reports.append(report),
        )
        assert stats.truncated_items == 1
        assert stats.encoded_tokens == 2 * context
        assert reports[-1] == (2, 2)


def test_models_without_heads(headless: uform.Model, arena: uform.Arena) -> None:
    with pytest.raises(uform.UnsupportedError, match="token head"):
        headless.text_encode(["a"], arena, outputs=uform.Outputs.TOKEN_VECTORS)
    with pytest.raises(uform.UnsupportedError, match="byte decoder"):
        headless.text_choose(["a"], ["yn"], arena)
