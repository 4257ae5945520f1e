"""Gives a checkpoint of texts the tensors of the other modalities, untrained: random numbers of a sensible size.

    python -m benchmarks.quality.media --input TEXT.safetensors --output FILE.safetensors

What is trained stays as it is, and `trained` in the configuration still says what that was.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tests.oracle import Audio, Image, Oracle, Video


def with_media(oracle: Oracle, seed: int = 0) -> Oracle:
    """The same model, with patches of pictures, videos and recordings."""
    configuration = replace(oracle.configuration, image=Image(), video=Video(), audio=Audio())
    grown = Oracle.random(configuration, seed)
    grown.load_state_dict(grown.state_dict() | oracle.state_dict())
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with_media(Oracle.from_checkpoint(arguments.input), arguments.seed).save(arguments.output)


if __name__ == "__main__":
    main()
