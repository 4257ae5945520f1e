"""Are late interaction and exact search as fast as what a user has, on the same vectors and as many threads?

    python -m benchmarks.rank [--seconds 2] [--rows 1000000]

maxsim: 32 query vectors against 1,000 documents of 180, of width 64 and 128, in F32 and BF16, against torch (a padded
einsum, a matrix product, a loop over documents), PyLate, NumKong and maxsim-cpu where they are installed.
top_k: the best 10 of 1,000,000 rows of 256 for 1 and 16 queries, F32, int8 and bits, against torch, FAISS' flat indexes
and USearch's exact search where they are installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

import uform

from .harness import THREADS, has, interleave, machine

Side = Callable[[], object]
DOCUMENTS, TOKENS, QUERY_TOKENS, WIDTH, BEST = 1000, 180, 32, 256, 10


def report(title: str, sides: dict[str, Side], seconds: float) -> None:
    timings = interleave(sides, seconds)
    ours = timings["uform"].median
    print(f"\n{title}\n\n| Side | ms (spread) | ours is faster by |\n|---|---|---|")
    for name, timing in timings.items():
        print(f"| {name} | {timing.median * 1e3:.2f} ({timing.spread:.0%}) | {timing.median / ours:.2f} |")


def by_documents(query: torch.Tensor, documents: torch.Tensor) -> Side:
    return lambda: torch.stack([(query @ document.T).amax(1).sum() for document in documents])


def maxsim_sides(width: int, dtype: torch.dtype, executor: uform.Executor) -> dict[str, Side]:
    generator = torch.Generator().manual_seed(0)
    query, documents = (
        torch.nn.functional.normalize(torch.randn(*shape, width, generator=generator), dim=-1).to(dtype)
        for shape in ((QUERY_TOKENS,), (DOCUMENTS, TOKENS))
    )
    rows = documents.view(-1, width)
    left, right = ((part.view(torch.uint16) if dtype is torch.bfloat16 else part).numpy() for part in (query, rows))
    ends = np.array([0, QUERY_TOKENS]), np.arange(DOCUMENTS + 1) * TOKENS
    sides: dict[str, Side] = {
        "uform": lambda: uform.rank.maxsim(left, ends[0], right, ends[1], executor=executor),
        "torch einsum": lambda: torch.einsum("qw,dtw->dqt", query, documents).amax(2).sum(1),
        "torch matmul": lambda: (query @ rows.T).view(QUERY_TOKENS, DOCUMENTS, TOKENS).amax(2).sum(0),
        "torch, by document": by_documents(query, documents),
    }
    if has("pylate.scores"):
        from pylate.scores import colbert_scores

        sides["PyLate"] = lambda: colbert_scores(query[None], documents)
    if has("numkong"):
        import numkong

        def pack(tokens: torch.Tensor) -> numkong.MaxSimPackedMatrix:
            own = numkong.Tensor(tokens.float().numpy())
            return numkong.maxsim_pack(own.astype("bf16") if dtype is torch.bfloat16 else own)

        packed = pack(query)
        packs = [pack(document) for document in documents]
        pool = ThreadPoolExecutor(THREADS)
        halves = packs[: DOCUMENTS // 2], packs[DOCUMENTS // 2 :]

        def half(some: list[numkong.MaxSimPackedMatrix]) -> list[float]:
            return [numkong.maxsim_packed(packed, pack) for pack in some]

        sides["NumKong, packed before"] = lambda: list(pool.map(half, halves))
    if dtype is torch.float32 and has("maxsim_cpu"):
        import maxsim_cpu

        arrays = query.numpy(), documents.numpy()
        sides["maxsim-cpu"] = lambda: maxsim_cpu.maxsim_scores(*arrays)
    exact = sides["torch einsum"]()
    found = sides["uform"]()
    assert isinstance(exact, torch.Tensor)
    assert np.allclose(np.ravel(found), exact.float(), atol=0.3 if dtype is torch.bfloat16 else 1e-3)
    return sides


def top_k_sides(queries: np.ndarray, corpus: np.ndarray, executor: uform.Executor) -> dict[str, Side]:
    sides: dict[str, Side] = {"uform": lambda: uform.rank.top_k(queries, corpus, BEST, executor=executor)}
    if corpus.dtype == np.float32:
        left, right = torch.from_numpy(queries), torch.from_numpy(corpus)
        sides["torch"] = lambda: torch.topk(left @ right.T, BEST)
    if corpus.dtype == np.int8:
        bytes_left, bytes_right = torch.from_numpy(queries), torch.from_numpy(corpus)
        # `@` of int8 answers int8, which overflows.
        sides["torch"] = lambda: torch.topk(torch._int_mm(bytes_left, bytes_right.T), BEST)
    if has("faiss"):
        import faiss

        faiss.omp_set_num_threads(THREADS)
        if corpus.dtype == np.float32:
            flat = faiss.IndexFlatIP(WIDTH)
            flat.add(corpus)
            sides["FAISS flat"] = lambda: flat.search(queries, BEST)
        if corpus.dtype == np.int8:
            kind = faiss.ScalarQuantizer.QT_8bit_direct_signed
            signed = faiss.IndexScalarQuantizer(WIDTH, kind, faiss.METRIC_INNER_PRODUCT)
            for first in range(0, len(corpus), 100_000):
                signed.add(corpus[first : first + 100_000].astype(np.float32))
            widened = queries.astype(np.float32)
            sides["FAISS flat, of signed bytes"] = lambda: signed.search(widened, BEST)
        if corpus.dtype == np.uint8:
            bits = faiss.IndexBinaryFlat(8 * corpus.shape[1])
            bits.add(corpus)
            sides["FAISS binary flat"] = lambda: bits.search(queries, BEST)
    if has("usearch"):
        from usearch.index import MetricKind, search

        metric = MetricKind.Hamming if corpus.dtype == np.uint8 else MetricKind.IP
        sides["USearch exact"] = lambda: search(corpus, queries, BEST, metric, exact=True, threads=THREADS)
    check_top_k(queries, corpus, sides)
    return sides


def check_top_k(queries: np.ndarray, corpus: np.ndarray, sides: dict[str, Side]) -> None:
    """The rows that each side found have the scores of the best ones: nobody is fast by leaving some out."""

    def widened(rows: np.ndarray) -> np.ndarray:
        # Of bits as plus and minus 1, the larger the product, the fewer differ.
        return 2 * np.unpackbits(rows, axis=1).astype(np.float32) - 1 if rows.dtype == np.uint8 else np.float32(rows)

    wide, best = widened(queries), np.empty((len(queries), 0), np.float32)
    for first in range(0, len(corpus), 100_000):
        best = np.concatenate([best, wide @ widened(corpus[first : first + 100_000]).T], axis=1)
        best = np.sort(best, axis=1)[:, -BEST:]
    for name, side in sides.items():
        found: Any = side()
        ids = np.reshape(found.keys if "USearch" in name else np.asarray(found[1]), (len(queries), BEST))
        scores = np.sort((widened(corpus[ids.ravel()]).reshape(*ids.shape, -1) * wide[:, None]).sum(2), axis=1)
        assert np.allclose(scores, best, rtol=1e-4), name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each side")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the corpus that is searched")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    print(machine())
    generator = np.random.default_rng(0)
    with uform.Executor.for_ram(THREADS) as executor:
        for width in (64, 128):
            for name, dtype in (("F32", torch.float32), ("BF16", torch.bfloat16)):
                sides = maxsim_sides(width, dtype, executor)
                title = f"maxsim: {QUERY_TOKENS} against {DOCUMENTS} x {TOKENS}, width {width}, {name}"
                report(title, sides, arguments.seconds)
        for name, corpus in (
            ("F32", generator.normal(size=(arguments.rows, WIDTH)).astype(np.float32)),
            ("int8", generator.integers(-127, 128, (arguments.rows, WIDTH), dtype=np.int8)),
            ("bits", generator.integers(0, 256, (arguments.rows, WIDTH // 8), dtype=np.uint8)),
        ):
            for count in (1, 16):
                sides = top_k_sides(corpus[:count].copy(), corpus, executor)
                title = f"top_k: the best {BEST} of {arguments.rows:,} x {WIDTH}, {count} queries, {name}"
                report(title, sides, arguments.seconds)


if __name__ == "__main__":
    main()
