"""`uform_torch` against what a user of PyTorch would run instead: what a module adds to a call, collating, end to end.

python -m benchmarks.torch_encoder --data FOLDER

FOLDER is what `python -m benchmarks.quality.data FOLDER` fetched; without it, the end-to-end part is left out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from torch.utils.data import DataLoader, default_collate
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

import uform
from benchmarks.harness import THREADS, checkpoint, interleave, machine, workloads
from benchmarks.quality import data
from uform_torch import Encoder, TapeDataset, collate, to_tensor, top_k, write_tape
from uform_torch.tensors import TensorArena

QUERIES = 200
BATCH = 256


def padded(texts: Sequence[str]) -> torch.Tensor:
    """Bytes as torch's default collate takes them: of one length."""
    rows = [torch.frombuffer(bytearray(text.encode() or b"\0"), dtype=torch.uint8) for text in texts]
    longest = max(map(len, rows))
    batch: torch.Tensor = default_collate([torch.nn.functional.pad(row, (0, longest - len(row))) for row in rows])
    return batch


def peer(texts: Sequence[str], folder: Path) -> SentenceTransformer:
    """A BERT of about the default checkpoint's size, with random weights, and words of the corpus as its vocabulary."""
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, WordPieceTrainer(vocab_size=4096, special_tokens=special))
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=512,
    )  # fmt: skip
    fast.save_pretrained(folder)
    configuration = BertConfig(
        vocab_size=4096, hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=1024
    )
    torch.manual_seed(0)
    BertModel(configuration).save_pretrained(folder)
    transformer = Transformer(str(folder), max_seq_length=512)
    return SentenceTransformer(modules=[transformer, Pooling(256)], device="cpu").eval()


def table(title: str, sides: dict[str, Callable[[], Any]], base: str, seconds: float, console: Console) -> None:
    """Medians, and how many times as long as `base` each side takes."""
    timings = interleave(sides, seconds)
    rows = Table("side", "median ms", "spread", f"x {base}", title=title)
    for name, timing in timings.items():
        ratio = timing.median / timings[base].median
        rows.add_row(name, f"{timing.median * 1e3:.3f}", f"{timing.spread:.0%}", f"{ratio:.3f}")
    console.print(rows)


def module_overhead(console: Console, seconds: float) -> None:
    """`Encoder.forward` on W1 against the call that it makes."""
    path, texts = checkpoint("tiny"), [text.decode() for text in workloads()[0].texts]
    executor = uform.Executor.for_ram(THREADS)
    encoder = Encoder(path, executor=executor)
    batch, receiver, arena = collate(texts), encoder.model.on(executor), TensorArena()
    tape = batch.tape()
    sides = {
        "uform call": lambda: to_tensor(receiver.text_encode(tape, arena).embeddings),
        "Encoder.forward": lambda: encoder(batch).embeddings,
    }
    table("W1, two threads", sides, "uform call", seconds, console)


def collating(console: Console, seconds: float, texts: list[str], model: SentenceTransformer) -> None:
    """256 texts to what a model takes."""
    sides = {
        "collate": lambda: collate(texts),
        "padding, default_collate": lambda: padded(texts),
        "sentence-transformers, tokenized": lambda: model.preprocess(texts),
    }
    table(
        f"{len(texts)} texts to a batch, {sum(map(len, texts)) / len(texts):.0f} characters on average",
        sides,
        "collate",
        seconds,
        console,
    )


def ours(paths: tuple[Path, Path], queries: Sequence[str], encoder: Encoder) -> torch.Tensor:
    """Ids of the ten best of each query."""
    loader = DataLoader(TapeDataset(*paths), batch_size=BATCH, num_workers=2, collate_fn=collate)
    corpus = torch.cat([encoder(batch).embeddings for batch in loader])
    return top_k(encoder(queries).embeddings, corpus, 10, executor=encoder.executor).ids


def theirs(texts: list[str], queries: list[str], model: SentenceTransformer) -> list[Any]:
    """The same; a DataLoader tokenizes, sorted by length, as `encode` itself sorts, so that little is padded."""
    ordered = sorted(texts, key=len)
    loader = DataLoader(ordered, batch_size=32, num_workers=2, collate_fn=model.preprocess)
    with torch.inference_mode():
        corpus = torch.cat([model(batch)["sentence_embedding"] for batch in loader])
    found: list[Any] = util.semantic_search(model.encode(queries, convert_to_tensor=True), corpus, top_k=10)
    return found


def end_to_end(console: Console, texts: list[str], queries: list[str], model: SentenceTransformer, rounds: int) -> None:
    """Descriptions from a DataLoader with two workers to results of a search; both sides in turn."""
    encoder = Encoder(executor=THREADS)
    parameters = (encoder.describe().parameters, sum(weights.numel() for weights in model.parameters()))
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "texts.bin", Path(folder) / "texts.npy"
        write_tape(texts, *paths)
        times: dict[str, list[float]] = {"uform_torch": [], "sentence-transformers": []}
        for _ in range(rounds):
            for name, run in (
                ("uform_torch", lambda: ours(paths, queries, encoder)),
                ("sentence-transformers", lambda: theirs(texts, queries, model)),
            ):
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    sizes = f"{sum(map(len, texts)) / len(texts):.0f} characters on average"
    rows = Table("side", "parameters, M", "seconds", "texts/s", title=f"{len(texts):,} descriptions, {sizes}")
    for (name, taken), count in zip(times.items(), parameters, strict=True):
        best = float(np.median(taken))
        rows.add_row(name, f"{count / 1e6:.2f}", f"{best:.1f}", f"{len(texts) / best:.0f}")
    console.print(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=6.0, help="spent on each side")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--field", choices=("short", "long", "both"), default="both", help="of the descriptions")
    parser.add_argument("--rounds", type=int, default=3, help="of the end-to-end part")
    parser.add_argument(
        "--parts", nargs="+", choices=("module", "collate", "end"), default=("module", "collate", "end")
    )
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    console = Console(width=110)
    console.print(f"{machine()}, torch {torch.__version__}")
    if "module" in arguments.parts:
        module_overhead(console, arguments.seconds)
    texts, queries = [text.decode() for text in workloads()[0].texts], ["mail server"]
    if arguments.data is not None:
        items = [item for item in data.load(arguments.data) if item.split == "test"]
        fields = ("short", "long") if arguments.field == "both" else (arguments.field,)
        texts = [getattr(item.english, name) for item in items for name in fields][: arguments.texts]
        queries = [item.english.short for item in items][:QUERIES]
    with tempfile.TemporaryDirectory() as folder:
        model = peer(texts, Path(folder))
    if "collate" in arguments.parts:
        collating(console, arguments.seconds, texts[:BATCH], model)
    if "end" in arguments.parts and arguments.data is not None:
        end_to_end(console, texts, queries, model, arguments.rounds)


if __name__ == "__main__":
    main()
