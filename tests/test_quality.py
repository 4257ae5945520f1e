"""The quality benchmark's own pieces: parsing, pairing, splitting, questions, figures, losses. No network."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from benchmarks.quality import encoding
from benchmarks.quality.batches import (
    LETTER,
    LIBRARIES,
    SECTIONS,
    YES_OR_NO,
    Sampler,
    by_section,
    crop,
    draw_question,
    held_out_questions,
)
from benchmarks.quality.data import (
    Description,
    Item,
    family,
    join,
    parse_description,
    split,
    split_of,
    stanzas,
)
from benchmarks.quality.metrics import bootstrap, calibration_error, chance, ranks, retrieval
from benchmarks.quality.objectives import choice_loss, info_nce, maxsim, word_teacher
from benchmarks.quality.optimizer import orthogonalize
from benchmarks.quality.train import learning_rate
from tests.oracle import QUERY_TOKEN, Configuration, Oracle

ENGLISH = """\
Package: lamp
Description-md5: 11
Description-en: lights a room
 Lamp lights
 any room.
 .
 It has:
  * a bulb
  * a switch

Package: lamp-doc
Description-md5: 22
Description-en: documentation of lamp
 How to use it.

Package: lamp-old
Description-md5: 33
Description-en: documentation of lamp
 How it was used.

Package: sofa
Description-md5: 44
Description-en: seats two
 Soft.
"""
DANISH = """\
Package: lamp
Description-md5: 11
Description-da: lyser et rum op
 Lamp lyser.

Package: sofa
Description-md5: 44
Description-da: seats two
 Blød.
"""
PACKAGES = """\
Package: lamp
Source: lights (1.2)
Section: contrib/games
Depends: a,
 b

Package: lamp-doc
Source: lights
Section: doc

Package: lamp-old
Section: doc

Package: sofa
Section: misc
"""


def items(count: int) -> list[Item]:
    """Packages of as many sources, all with a Danish translation."""
    sections = list(SECTIONS)
    return [
        Item(
            package=f"package-{index}",
            source=f"source{chr(97 + index % 26)}{chr(97 + index // 26)}",
            section=sections[index % len(sections)],
            english=Description(f"phrase {index}", f"paragraph {index} " * 30),
            translations={"da": Description(f"sætning {index}", f"afsnit {index} " * 30)},
        )
        for index in range(count)
    ]


def test_stanzas_keep_continuation_lines() -> None:
    fields = list(stanzas(PACKAGES.splitlines(keepends=True)))
    assert [stanza["Package"] for stanza in fields] == ["lamp", "lamp-doc", "lamp-old", "sofa"]
    assert fields[0]["Depends"] == "a,\nb"


def test_description_joins_paragraphs_and_keeps_lists() -> None:
    stanza = next(stanzas(ENGLISH.splitlines()))
    description = parse_description(stanza["Description-en"])
    assert description.short == "lights a room"
    assert description.long == "Lamp lights any room.\nIt has:\n* a bulb\n* a switch"


def test_join_drops_shared_texts_and_partial_translations() -> None:
    found = join(stanzas(PACKAGES.splitlines()), stanzas(ENGLISH.splitlines()), {"da": stanzas(DANISH.splitlines())})
    assert [item.package for item in found] == ["lamp", "sofa"]
    lamp, sofa = found
    assert (lamp.source, lamp.section) == ("lights", "games")
    assert lamp.translations == {"da": Description("lyser et rum op", "Lamp lyser.")}
    assert sofa.translations == {}


def test_family_forgets_versions() -> None:
    assert family("gcc-12-cross") == family("gcc-11-cross") == "gcc-cross"
    assert family("python3.11") == "python"
    assert family("7zip") == "zip"
    assert family("0") == "0"


def test_split_is_stable_complete_and_by_family() -> None:
    assert split_of("gcc-11") == split_of("gcc-12")
    made = items(600)
    parts = split(made)
    assert sum(len(part) for part in parts.values()) == len(made)
    assert 0.05 < len(parts["test"]) / len(made) < 0.16
    assert split(made[::-1])["test"] == parts["test"][::-1]


def test_crop_never_cuts_a_character() -> None:
    for length in range(12):
        cropped = crop("aéあ🎈b", length)
        assert len(cropped) <= length
        cropped.decode()


def test_sampler_repeats_for_a_seed_and_passes_over_every_item() -> None:
    made = items(40)
    first, second = Sampler(made, 3), Sampler(made, 3)
    assert first.indices(16) + first.indices(24) == second.indices(16) + second.indices(24)
    assert sorted(Sampler(made, 1).indices(40)) == list(range(40))
    views = [first.views(item, 16, 32, 0.5) for item in made]
    assert views == [second.views(item, 16, 32, 0.5) for item in made]
    assert all(0 < len(view.long) <= 32 and view.translation for view in views)


def test_questions_have_a_legal_answer() -> None:
    made = items(80)
    sections = {item.english.short.encode(): item.section for item in made}
    source, grouped = random.Random(0), by_section(made)
    asked = [draw_question(grouped, source, 64) for _ in range(400)]
    assert {question.group for question in asked} == {YES_OR_NO, LETTER}
    truths = [question.answer == ord("y") for question in asked if question.group == YES_OR_NO]
    assert 0.4 < np.mean(truths) < 0.6
    for question in asked:
        assert question.answer in question.legal
        assert len(set(question.legal)) == len(question.legal) == (2 if question.group == YES_OR_NO else 4)
        text, _, asks = question.text.rpartition(b"\n")
        section = sections.get(text)
        if section is not None and question.group == YES_OR_NO:
            assert asks == b"library? "
            assert (section in LIBRARIES) == (question.answer == ord("y"))
        elif section is not None:
            assert chr(question.answer) == SECTIONS[section]
    assert len(set(SECTIONS.values())) == len(SECTIONS)
    assert held_out_questions(made, 64, 20, 0) == held_out_questions(made, 64, 20, 0)


def test_ranks_and_figures() -> None:
    scores = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    found = ranks(scores, np.array([0, 2, 1]))
    assert found.tolist() == [1, 3, 2]
    figures = retrieval(found)
    assert figures["recall@1"].mean == pytest.approx(1 / 3)
    assert figures["mrr"].mean == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert figures["ndcg@10"].mean == pytest.approx((1 + 1 / 2 + 1 / np.log2(3)) / 3)
    assert retrieval(np.array([11]))["ndcg@10"].mean == 0.0


def test_chance_is_the_mean_over_random_orders() -> None:
    figures = retrieval(np.tile(np.arange(1, 51), 20))
    for name, interval in chance(50).items():
        assert interval.mean == pytest.approx(figures[name].mean)


def test_bootstrap_covers_the_mean() -> None:
    values = np.random.default_rng(0).normal(size=500)
    interval = bootstrap(values)
    assert interval.low < interval.mean < interval.high
    assert interval.high - interval.low == pytest.approx(2 * 1.96 / 500**0.5, rel=0.2)


def test_calibration_error() -> None:
    assert calibration_error(np.full(10, 0.7), np.array([1.0] * 7 + [0.0] * 3)) == pytest.approx(0)
    assert calibration_error(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(0.5)


def test_maxsim_ignores_padding() -> None:
    generator = torch.Generator().manual_seed(0)
    queries = torch.nn.functional.normalize(torch.randn(2, 3, 4, generator=generator), dim=-1)
    documents = torch.nn.functional.normalize(torch.randn(3, 5, 4, generator=generator), dim=-1)
    query_lengths, document_lengths = torch.tensor([2, 3]), torch.tensor([5, 1, 4])
    scores = maxsim(queries, query_lengths, documents, document_lengths)
    for row in range(2):
        for column in range(3):
            products = queries[row, : query_lengths[row]] @ documents[column, : document_lengths[column]].T
            assert scores[row, column] == pytest.approx(products.amax(1).mean().item(), abs=1e-6)


def test_losses_prefer_the_truth() -> None:
    scale = torch.tensor(10.0)
    assert info_nce(torch.eye(4), scale) < 1e-3
    assert info_nce(torch.zeros(4, 4), scale) == pytest.approx(np.log(4))
    legal = torch.zeros(1, 256, dtype=torch.bool)
    legal[0, [ord("y"), ord("n")]] = True
    logits = torch.full((1, 256), 9.0)
    assert choice_loss(logits, legal, torch.tensor([ord("y")])) == pytest.approx(np.log(2))


def test_word_teacher_groups_texts_that_share_words() -> None:
    texts = [f"{topic} {topic}s word{index % 7}" for topic in ("violin", "tractor", "glacier") for index in range(30)]
    texts += [f"filler{chr(97 + index % 9)} {chr(97 + index // 9) * 3}" for index in range(81)]
    rows = word_teacher(texts, 8, seed=0)
    similar = rows @ rows.T
    assert similar[:30, :30].mean() > similar[:30, 30:60].mean() + 0.5


@pytest.mark.parametrize("shape", [(24, 24), (16, 40), (40, 16)])
def test_orthogonalize(shape: tuple[int, int]) -> None:
    matrices = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalize(matrices))
    assert values.max() < 1.3
    assert values.median() > 0.6


def test_learning_rate_rises_and_falls_to_zero() -> None:
    rates = [learning_rate(step / 100, 0.1) for step in range(101)]
    assert rates[0] == rates[-1] == 0
    assert max(rates) == rates[10] == 1
    assert learning_rate(1.5, 0.1) == 0


def small_model() -> Oracle:
    configuration = Configuration(2, 64, 32, 192, 32, 128, token_width=32, choice_temperature_groups=2)
    return Oracle.random(configuration, 0).double()


def test_grouped_encoding_matches_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "GROUP_TOKENS", 32)
    model = small_model()
    texts = [b"one", b"a rather longer text", b"x", b"twenty-one bytes long"]
    crew = encoding.Crew(model, model, threads=2, products=torch.float32)
    encoded = crew.encode(texts)
    assert len(encoded.groups) > 1
    single, states, _ = model.encode_texts(texts)
    with torch.no_grad():
        assert torch.allclose(encoded.pooled(model).double(), single, atol=1e-6)
    padded, lengths = encoded.padded([1, 2])
    assert lengths.tolist() == [20, 1]
    assert torch.allclose(padded[0], states[1])
    asked = crew.encode([[*text, QUERY_TOKEN] for text in texts]).last([0])
    assert torch.allclose(asked[0], model(torch.tensor([[*texts[0], QUERY_TOKEN]]))[0, -1])


def test_gradients_of_groups_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "GROUP_TOKENS", 32)
    texts = [b"one", b"a rather longer text", b"x"]
    expected, found = small_model(), small_model()
    for model, limit in ((expected, 4096), (found, 32)):
        monkeypatch.setattr(encoding, "GROUP_TOKENS", limit)
        crew = encoding.Crew(model, model, threads=2, products=torch.float32)
        encoded = crew.encode(texts, gradients=True)
        encoded.pooled(model)[0].square().sub(encoded.pooled(model)[1]).sum().backward()
        crew.backward(encoded)
    for left, right in zip(expected.parameters(), found.parameters(), strict=True):
        assert (left.grad is None) == (right.grad is None)
        if left.grad is not None:
            assert torch.allclose(left.grad, right.grad, atol=1e-7)
