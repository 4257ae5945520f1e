"""Do decoding and the network keep two threads busy together?

    python -m benchmarks.overlap [--seconds 3]

A batch of 256 pictures, JPEG, PNG and WebP of many sizes, through `image_encode` of the tiny model, beside its two
parts: the pictures decoded and resized (through a network of one narrow block), and the network alone (on pixels that
fit its grid). All threads do both, a group of pictures at a time, so the floor is the sum of the parts: no thread
waits for another one, and no core is idle.
"""

from __future__ import annotations

import argparse
import io

import numpy as np
from PIL import Image as Pillow

import uform
from tests import front_end

from .harness import MODELS, THREADS, checkpoint, interleave, machine

COUNT = 256


def pictures() -> list[Pillow.Image]:
    """Smooth pictures with some grain, of many sizes."""
    random = np.random.default_rng(0)
    made = []
    for _ in range(COUNT):
        width, height = int(random.integers(200, 900)), int(random.integers(200, 900))
        coarse = Pillow.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((width, height))
        grain = random.integers(-9, 10, (height, width, 1))
        made.append(Pillow.fromarray(np.clip(np.asarray(coarse).astype(int) + grain, 0, 255).astype(np.uint8)))
    return made


def encoded(picture: Pillow.Image, index: int) -> bytes:
    file = io.BytesIO()
    picture.save(file, ("JPEG", "JPEG", "PNG", "WebP")[index % 4], quality=85)
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each side")
    arguments = parser.parse_args()
    print(machine())
    made = pictures()
    files = [encoded(picture, index) for index, picture in enumerate(made)]
    image = MODELS["tiny-media"].image
    assert image
    fitting = []
    for picture in made:
        rows, columns = front_end.grid(picture.height, picture.width, image.patch_side, image.max_patches)
        fitting.append(np.asarray(picture.resize((columns * image.patch_side, rows * image.patch_side))))
    model, narrow = (uform.Model.load_ram(checkpoint(name)) for name in ("tiny-media", "front-end"))
    arena = uform.Arena()
    with uform.Executor.for_ram(THREADS) as executor:
        sides = {
            "files through the model": lambda: model.on(executor).image_encode(files, arena),
            "decoding": lambda: narrow.on(executor).image_encode(files, arena),
            "network": lambda: model.on(executor).image_encode_pixels(fitting, arena),
        }
        timings = interleave(sides, arguments.seconds)
    total, decoding, network = (timing.median for timing in timings.values())
    print(f"\n{COUNT} pictures, {sum(map(len, files)) / 1e6:.1f} MB, {THREADS} threads\n")
    print("| Part | ms | spread |\n|---|---|---|")
    for name, timing in timings.items():
        print(f"| {name} | {timing.median * 1e3:.0f} | {timing.spread:.0%} |")
    slower, both = max(decoding, network), decoding + network
    print(f"\nOver the slower part: {total / slower:.2f}; over the sum of both: {total / both:.2f}")


if __name__ == "__main__":
    main()
