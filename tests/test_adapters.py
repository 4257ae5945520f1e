"""The adapters, with the real packages."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import util
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import uform
from uform_torch import Encoder
from uform_torch.adapters.scikit_learn import TextEmbedder
from uform_torch.adapters.sentence_transformers import SentenceEncoder

DOCUMENTS = {
    "editor": "text editor for programmers",
    "images": "library to decode JPEG images",
    "mail": "mail server with spam filtering",
    "music": "player for music files",
}
QUERIES = {"q1": "edit source code text", "q2": "decode pictures in JPEG", "q3": "server for electronic mail"}
RELEVANT = {"q1": {"editor"}, "q2": {"images"}, "q3": {"mail"}}


@pytest.fixture(scope="module")
def sentences() -> SentenceEncoder:
    return SentenceEncoder(Encoder())


def test_information_retrieval_evaluator(sentences: SentenceEncoder) -> None:
    metrics: dict[str, Any] = {name: [4] for name in ("mrr_at_k", "ndcg_at_k", "map_at_k")}
    metrics |= {"accuracy_at_k": [1], "precision_recall_at_k": [1], "write_csv": False}
    evaluator = InformationRetrievalEvaluator(QUERIES, DOCUMENTS, RELEVANT, name="packages", **metrics)
    found = evaluator(sentences)
    queries, documents = (
        sentences.encoder.encode_text(list(texts.values())).embeddings for texts in (QUERIES, DOCUMENTS)
    )
    assert queries is not None
    assert documents is not None
    order = (queries @ documents.T).argsort(dim=1, descending=True)
    ids = list(DOCUMENTS)
    right = [ids[order[row, 0]] in RELEVANT[query] for row, query in enumerate(QUERIES)]
    assert found["packages_cosine_accuracy@1"] == pytest.approx(np.mean(right))
    assert sentences.model_card_data.metrics["packages_cosine_accuracy@1"] == found["packages_cosine_accuracy@1"]
    cut = InformationRetrievalEvaluator(QUERIES, DOCUMENTS, RELEVANT, truncate_dim=8, **metrics)
    assert 0 <= cut(sentences)["cosine_ndcg@4"] <= 1


def test_embedding_similarity_evaluator(sentences: SentenceEncoder) -> None:
    texts = list(DOCUMENTS.values())
    evaluator = EmbeddingSimilarityEvaluator(texts, texts[1:] + texts[:1], [0.1, 0.4, 0.2, 0.3], write_csv=False)
    assert -1 <= evaluator(sentences)["spearman_cosine"] <= 1


def test_semantic_search(sentences: SentenceEncoder) -> None:
    texts = list(DOCUMENTS.values())
    corpus = sentences.encode(texts, convert_to_tensor=True)
    hits = util.semantic_search(sentences.encode(texts, convert_to_tensor=True), corpus, top_k=2)
    assert [row[0]["corpus_id"] for row in hits] == [0, 1, 2, 3]
    assert [row[0]["score"] for row in hits] == pytest.approx([1.0] * 4)
    torch.testing.assert_close(sentences.similarity(corpus, corpus), util.cos_sim(corpus, corpus))
    torch.testing.assert_close(sentences.similarity_pairwise(corpus, corpus), torch.ones(4))


def test_encode_as_sentence_transformers_does() -> None:
    sentences = SentenceEncoder(Encoder(), prompts={"query": "find: "})
    rows = sentences.encode(["a", "b", "c"], batch_size=2)
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.float32
    assert rows.shape == (3, sentences.get_embedding_dimension())
    one = sentences.encode("b", convert_to_tensor=True)
    assert isinstance(one, torch.Tensor)
    np.testing.assert_array_equal(one.numpy(), rows[1])
    assert sentences.encode([]).shape == (0, rows.shape[1])
    np.testing.assert_array_equal(sentences.encode_query("a"), sentences.encode("find: a"))
    np.testing.assert_array_equal(sentences.encode_query("a", prompt="x"), sentences.encode("xa"))
    np.testing.assert_array_equal(sentences.encode_document("a"), rows[0])
    cut = sentences.encode(["a"], truncate_dim=5)
    np.testing.assert_allclose(cut[0], rows[0, :5] / np.linalg.norm(rows[0, :5]), rtol=1e-5)
    for wrong in ({"precision": "int8"}, {"output_value": "token_embeddings"}, {"device": "meta"}):
        with pytest.raises(uform.UnsupportedError):
            sentences.encode(["a"], **wrong)
    with pytest.raises(uform.InvalidArgumentError, match="prompt_name: there is no 'other'"):
        sentences.encode(["a"], prompt_name="other")
    with pytest.raises(uform.InvalidArgumentError, match="truncate_dim"):
        sentences.encode(["a"], truncate_dim=10_000)


def test_scikit_learn_pipeline() -> None:
    texts = [f"{word} {index}" for word in ("editor of texts", "player of music") for index in range(8)]
    labels = [0] * 8 + [1] * 8
    pipeline = make_pipeline(TextEmbedder(), LogisticRegression(C=100.0))
    assert pipeline.fit(texts, labels).score(texts, labels) == 1.0
    search = GridSearchCV(pipeline, {"textembedder__dimensions": [8, 64]}, cv=2, error_score="raise")
    assert search.fit(np.array(texts), labels).best_params_["textembedder__dimensions"] in (8, 64)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(texts), pipeline.predict(texts))


def test_scikit_learn_transformer(checkpoint: str) -> None:
    embedder = TextEmbedder(checkpoint, threads=1, batch_size=2)
    check_is_fitted(embedder)
    texts = ["a", "", "naïve"]
    rows = embedder.fit_transform(texts)
    np.testing.assert_array_equal(rows, Encoder(checkpoint).encode_text(texts).embeddings.numpy())  # type: ignore[union-attr]
    for other in (clone(embedder), copy.deepcopy(embedder), pickle.loads(pickle.dumps(embedder))):
        np.testing.assert_array_equal(other.transform(iter(texts)), rows)
    assert embedder.set_params(dimensions=3).transform(texts).shape == (3, 3)
    assert list(embedder.get_feature_names_out()) == ["embedding0", "embedding1", "embedding2"]
    assert embedder.transform([]).shape == (0, 3)
    assert embedder.get_params()["threads"] == 1
