"""UForm in PyTorch: tensors without copies.

    arena = uform_torch.TensorArena()
    encoded = model.on(executor).text_encode(["a cat on a mat", "a dog in the fog"], arena)
    embeddings = uform_torch.to_tensor(encoded.embeddings)  # (2, dimensions), no copy, and nobody rewrites it

It needs torch, which `uform` does not: `pip install 'uform[torch]'`.
"""

from __future__ import annotations

from uform_torch.tensors import TensorArena, to_tensor

__all__ = ["TensorArena", "to_tensor"]
