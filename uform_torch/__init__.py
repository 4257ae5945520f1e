"""UForm in PyTorch.

It needs torch, which `uform` does not: `pip install 'uform[torch]'`.
"""

from __future__ import annotations

__all__: list[str] = []
