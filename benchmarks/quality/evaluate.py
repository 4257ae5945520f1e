"""How good a checkpoint is: phrases find their paragraphs, in English and across languages; choices are calibrated.

    python -m benchmarks.quality.evaluate --data FOLDER --checkpoint FILE.safetensors [--backend uform] [--json FILE]

From a phrase, the one right long description is to be found among those of 5,000 packages that were held out by source
package. Beside every figure: chance, a model of the same shape with random weights, and BM25.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import bm25s
import numpy as np
import torch

from tests.oracle import Oracle

from .batches import LETTER, YES_OR_NO, Question, held_out_questions
from .data import Item, load, split
from .encoding import Crew
from .metrics import Floats, Interval, bootstrap, calibration_error, chance, ranks, retrieval
from .train import question_logits, question_tokens

LANGUAGES = ("da", "it", "fr", "de", "pt_BR", "ja", "ru")
RERANKED = 100
CHUNK = 1024
QUESTION_BYTES = 128
GROUP_NAMES = {YES_OR_NO: "yes or no", LETTER: "one of four letters"}


class Encoder(Protocol):
    """What is measured."""

    def encode(self, texts: Sequence[bytes], token_vectors: bool) -> tuple[Floats, list[Floats]]:
        """Embeddings `[texts, dimensions]`, and each text's token vectors `[tokens, token_width]` where asked for."""

    def choose(self, questions: Sequence[Question]) -> list[Floats]:
        """Probabilities of each question's legal bytes."""


class SupportsOffsets(Protocol):
    """A buffer of rows with the offsets of the items that they belong to."""

    offsets: object


class OracleEncoder:
    """The model in PyTorch, its matrix products in BF16 as the library computes them."""

    def __init__(self, model: Oracle, threads: int) -> None:
        self.crew = Crew(model, model, threads)
        self.context = model.configuration.context

    @torch.no_grad()
    def encode(self, texts: Sequence[bytes], token_vectors: bool) -> tuple[Floats, list[Floats]]:
        model, chunks = self.crew.model, []
        vectors: list[Floats] = [np.empty(0)] * (len(texts) if token_vectors else 0)
        for start in range(0, len(texts), CHUNK):
            encoded = self.crew.encode([text[: self.context] for text in texts[start : start + CHUNK]])
            chunks.append(encoded.pooled(model).numpy())
            for group in encoded.groups if token_vectors else ():
                rows = model.token_vectors(group.states).half().numpy()
                for index, row, length in zip(group.indices, rows, group.lengths.tolist(), strict=True):
                    vectors[start + index] = row[:length].copy()
        return np.concatenate(chunks), vectors

    @torch.no_grad()
    def choose(self, questions: Sequence[Question]) -> list[Floats]:
        states = self.crew.encode(question_tokens(questions)).last(range(len(questions)))
        logits, _, _ = question_logits(self.crew.model, states, questions)
        pairs = zip(logits, questions, strict=True)
        return [torch.softmax(row[list(question.legal)], 0).numpy() for row, question in pairs]


def by_item(tape: SupportsOffsets) -> list[Floats]:
    """Copies of the rows of each item of a `uform.RowsTape`, so that the next call may rewind the arena."""
    rows = np.array(tape)
    return [rows[start:stop] for start, stop in pairwise(np.array(tape.offsets).tolist())]


class UformEncoder:
    """The library itself."""

    def __init__(self, path: Path) -> None:
        import uform

        self.outputs = uform.Outputs
        executor = uform.Executor.for_ram()
        self.model = uform.Model.load_ram(str(path)).on(executor)
        self.arena = uform.Arena(executor)

    def encode(self, texts: Sequence[bytes], token_vectors: bool) -> tuple[Floats, list[Floats]]:
        outputs = self.outputs.EMBEDDINGS
        if token_vectors:
            outputs |= self.outputs.TOKEN_VECTORS
        encoded = self.model.text_encode(texts, self.arena, outputs=outputs)
        return np.array(encoded.embeddings), by_item(encoded.token_vectors) if token_vectors else []

    def choose(self, questions: Sequence[Question]) -> list[Floats]:
        texts = [question.text for question in questions]
        legal = [question.legal for question in questions]
        groups = [question.group for question in questions]
        return by_item(self.model.text_choose(texts, legal, self.arena, temperature_groups=groups))


def open_encoder(path: Path, backend: str) -> Encoder:
    if backend == "uform":
        return UformEncoder(path)
    return OracleEncoder(Oracle.from_checkpoint(path), threads=len(os.sched_getaffinity(0)))


Results = dict[str, dict[str, dict[str, Interval]]]
"""By the queries' language, by method, by figure."""


def queries_of(pool: Sequence[Item], language: str) -> tuple[list[str], np.ndarray]:
    """Phrases in a language, and the indices in the pool of the packages that they describe."""
    if language == "en":
        return [item.english.short for item in pool], np.arange(len(pool))
    having = [index for index, item in enumerate(pool) if language in item.translations]
    return [pool[index].translations[language].short for index in having], np.array(having)


def rerank(scores: Floats, queries: Sequence[Floats], documents: Sequence[Floats], depth: int = RERANKED) -> Floats:
    """`scores` `[queries, documents]` with the best `depth` of each row ordered by MaxSim, above all others."""
    result = scores.copy()
    for row, query in enumerate(queries):
        best = np.argpartition(-scores[row], depth - 1)[:depth]
        stacked = np.concatenate([documents[index] for index in best])
        starts = np.cumsum([0, *(len(documents[index]) for index in best[:-1])])
        found = np.maximum.reduceat(query.astype(np.float32) @ stacked.T.astype(np.float32), starts, axis=1).mean(0)
        result[row, best] = 3.0 + found
    return result


def retrieve(pool: Sequence[Item], encoder: Encoder, untrained: Encoder, languages: Sequence[str]) -> Results:
    """Phrases in each language to English paragraphs, by every method."""
    documents = [item.english.long for item in pool]
    lexical = bm25s.BM25()
    lexical.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
    encoded = [document.encode() for document in documents]
    rows, vectors = encoder.encode(encoded, token_vectors=True)
    untrained_rows, _ = untrained.encode(encoded, token_vectors=False)

    results: Results = {}
    for language in languages:
        queries, relevant = queries_of(pool, language)
        if not queries:
            continue
        words = bm25s.tokenize(queries, return_ids=False, show_progress=False)
        encoded = [query.encode() for query in queries]
        query_rows, query_vectors = encoder.encode(encoded, token_vectors=True)
        similar = query_rows @ rows.T
        scores = {"BM25": np.stack([lexical.get_scores(some) if some else np.zeros(len(pool)) for some in words])}
        scores["random weights"] = untrained.encode(encoded, token_vectors=False)[0] @ untrained_rows.T
        scores["embeddings"] = similar
        scores[f"MaxSim of the best {RERANKED}"] = rerank(similar, query_vectors, vectors)
        found = {name: retrieval(ranks(rows_of, relevant)) for name, rows_of in scores.items()}
        results[language] = {"chance": chance(len(pool))} | found
        print_retrieval(language, len(queries), results[language])
    return results


def print_retrieval(language: str, queries: int, methods: dict[str, dict[str, Interval]]) -> None:
    print(f"\nPhrases in {language} to English paragraphs, {queries} queries\n", flush=True)
    print("| Method | NDCG@10 | MRR | recall@1 |\n|---|---|---|---|")
    for name, figures in methods.items():
        print(f"| {name} | {figures['ndcg@10']} | {figures['mrr']} | {figures['recall@1']} |")


def choices(encoder: Encoder, questions: Sequence[Question]) -> dict[str, dict[str, Interval | float]]:
    """Accuracy and calibration of each type of question."""
    probabilities = encoder.choose(questions)
    results: dict[str, dict[str, Interval | float]] = {}
    print("\n| Question | count | chance | accuracy | mean confidence | ECE |\n|---|---|---|---|---|---|")
    for group, name in GROUP_NAMES.items():
        rows = [index for index, question in enumerate(questions) if question.group == group]
        guesses = [int(probabilities[index].argmax()) for index in rows]
        correct = np.array(
            [
                questions[index].legal[guess] == questions[index].answer
                for index, guess in zip(rows, guesses, strict=True)
            ]
        ).astype(float)
        confidences = np.array([probabilities[index].max() for index in rows])
        odds = 1 / len(questions[rows[0]].legal)
        accuracy, error = bootstrap(correct), calibration_error(confidences, correct)
        confidence = float(confidences.mean())
        results[name] = {"chance": odds, "accuracy": accuracy, "confidence": confidence, "ece": error}
        print(f"| {name} | {len(rows)} | {odds:.2f} | {accuracy} | {confidence:.3f} | {error:.3f} |")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--backend", choices=("oracle", "uform"), default="oracle")
    parser.add_argument("--pool", type=int, default=5000)
    parser.add_argument("--questions", type=int, default=4000)
    parser.add_argument("--languages", nargs="*", default=LANGUAGES)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    held_out = split(load(arguments.data))["test"]
    pool = random.Random(0).sample(held_out, arguments.pool)
    questions = held_out_questions(held_out, QUESTION_BYTES, arguments.questions, seed=1)
    encoder = open_encoder(arguments.checkpoint, arguments.backend)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "untrained.safetensors"
        Oracle.random(Oracle.from_checkpoint(arguments.checkpoint).configuration, seed=1).save(path)
        untrained = open_encoder(path, arguments.backend)
        results = {
            "retrieval": retrieve(pool, encoder, untrained, ("en", *arguments.languages)),
            "choices": choices(encoder, questions),
        }
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2, default=dataclasses.asdict) + "\n")


if __name__ == "__main__":
    main()
