"""UForm in PyTorch: tensors without copies, batches for loaders, search and reranking.

    arena = uform_torch.TensorArena()
    encoded = model.on(executor).text_encode(["a cat on a mat", "a dog in the fog"], arena)
    embeddings = uform_torch.to_tensor(encoded.embeddings)  # (2, dimensions), no copy, and nobody rewrites it

It needs torch, which `uform` does not: `pip install 'uform[torch]'`.
"""

from __future__ import annotations

from uform_torch import metrics
from uform_torch.batch import TapeBatch
from uform_torch.collate import AudioFile, ImageFile, Samples, Text, VideoFile, collate
from uform_torch.dataset import TapeDataset, write_tape
from uform_torch.encoder import Encoded, Encoder
from uform_torch.rerank import ChoiceReranker, LateInteractionReranker, Reranker, maxsim
from uform_torch.retrieval import Quantizer, Ranking, top_k
from uform_torch.tensors import TensorArena, to_tensor

__all__ = [
    "AudioFile",
    "ChoiceReranker",
    "Encoded",
    "Encoder",
    "ImageFile",
    "LateInteractionReranker",
    "Quantizer",
    "Ranking",
    "Reranker",
    "Samples",
    "TapeBatch",
    "TapeDataset",
    "TensorArena",
    "Text",
    "VideoFile",
    "collate",
    "maxsim",
    "metrics",
    "to_tensor",
    "top_k",
    "write_tape",
]
