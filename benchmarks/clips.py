"""Do videos and recordings become patches as fast as with the decoders that a user has, on as many threads?

    python -m benchmarks.clips [--seconds 2]

A side decodes a batch of files on two threads. Ours is the whole verb over a network of one narrow block, so that what
is measured is its decoding, resampling, log-mel frames, resizing and patches; the others have no network at all.

Recordings: seconds of sound a second, against soundfile or PyAV and the same log-mel frames by torch.
Videos: seconds of video a second, four frames of each, against PyAV and torchcodec.
Files are made by FFmpeg, with its command.
"""

from __future__ import annotations

import argparse
import io
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

import uform
from tests import front_end

from .harness import CACHE, THREADS, checkpoint, has, interleave, machine

SECONDS = 20
FILES = 8
SOUNDS = {
    "WAV": ("wav", ["-c:a", "pcm_s16le"]),
    "FLAC": ("flac", ["-c:a", "flac"]),
    "MP3": ("mp3", ["-c:a", "libmp3lame", "-b:a", "64k"]),
    "Opus": ("opus", ["-c:a", "libopus", "-b:a", "32k"]),
}
CLIPS = {
    "H.264 MP4": ("mp4", ["-c:v", "libx264", "-preset", "medium", "-crf", "23"]),
    "HEVC MP4": ("mp4", ["-c:v", "libx265", "-x265-params", "log-level=none", "-preset", "fast"]),
    "VP9 WebM": ("webm", ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "400k"]),
}
VIDEO_SECONDS, RATE, SIDE, SIZE = 8, 4, 16, (640, 360)


def made(name: str, source: list[str], options: list[str], suffix: str) -> list[bytes]:
    """Files of a kind, made once."""
    path = CACHE / f"{name.replace(' ', '-')}.{suffix}"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["ffmpeg", "-nostdin", "-y", "-v", "error", *source, *options, str(path)]
        subprocess.run(command, check=True)
    return [path.read_bytes()] * FILES


def sounds(name: str) -> list[bytes]:
    suffix, options = SOUNDS[name]
    voice = f"aevalsrc='0.3*sin(440*t*(1+0.2*sin(3*t)))*sin(7*t)+0.05*random(0)':s=16000:d={SECONDS}"
    return made(f"sound-{name}", ["-f", "lavfi", "-i", voice], options, suffix)


def clips(name: str) -> list[bytes]:
    suffix, options = CLIPS[name]
    scene = f"testsrc2=s={SIZE[0]}x{SIZE[1]}:r=30:d={VIDEO_SECONDS},noise=alls=8:allf=t"
    return made(f"clip-{name}", ["-f", "lavfi", "-i", scene], [*options, "-pix_fmt", "yuv420p"], suffix)


MEL = torch.from_numpy(front_end.filters()).float()
WINDOW = torch.hann_window(front_end.WINDOW, periodic=True)


def torch_mel(samples: torch.Tensor) -> torch.Tensor:
    """Log-mel frames as torchaudio computes them, with torch.stft."""
    spectrum = torch.stft(samples, front_end.WINDOW, front_end.HOP, window=WINDOW, return_complex=True)
    levels = torch.log10(torch.clamp(MEL @ spectrum.abs().square(), min=1e-10))
    return (torch.maximum(levels, levels.max() - 8) + 4) / 4


def by_soundfile(file: bytes) -> object:
    import soundfile

    samples, rate = soundfile.read(io.BytesIO(file), dtype="float32")
    assert rate == front_end.RATE
    return torch_mel(torch.from_numpy(samples))


def by_av(file: bytes) -> object:
    import av

    with av.open(io.BytesIO(file)) as container:
        resampler = av.AudioResampler("flt", "mono", front_end.RATE)
        parts = [part.to_ndarray()[0] for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    return torch_mel(torch.from_numpy(np.concatenate(parts)))


def grid() -> tuple[int, int]:
    rows, columns = front_end.grid(SIZE[1], SIZE[0], SIDE, 64)
    return rows * SIDE, columns * SIDE


def video_by_av(file: bytes) -> object:
    """Every frame is decoded, and those that are due are resized and turned to RGB."""
    import av

    height, width = grid()
    picked, due = [], 0.0
    with av.open(io.BytesIO(file)) as container:
        for frame in container.decode(video=0):
            if frame.time >= due:
                picked.append(frame.reformat(width=width, height=height, format="rgb24").to_ndarray())
                due += 1 / RATE
    return np.stack(picked)


def video_by_torchcodec(file: bytes) -> object:
    from torchcodec.decoders import VideoDecoder

    height, width = grid()
    decoder = VideoDecoder(file, num_ffmpeg_threads=1, seek_mode="exact")
    frames = decoder.get_frames_played_at([index / RATE for index in range(VIDEO_SECONDS * RATE)]).data
    return torch.nn.functional.interpolate(frames.float(), (height, width), mode="bilinear", antialias=True)


def on_threads(pool: ThreadPoolExecutor, decode: Callable[[bytes], object], files: list[bytes]) -> Callable[[], object]:
    return lambda: list(pool.map(decode, files))


def report(title: str, sides: dict[str, Callable[[], object]], length: float, seconds: float) -> None:
    timings = interleave(sides, seconds)
    ours = timings["uform"].median
    print(f"\n{title}\n\n| Side | ms a batch | seconds of it a second | ours is faster by |\n|---|---|---|---|")
    for name, timing in timings.items():
        spread = f"{timing.median * 1e3:.0f} (spread {timing.spread:.0%})"
        print(f"| {name} | {spread} | {FILES * length / timing.median:,.0f} | {timing.median / ours:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each side")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    model = uform.Model.load_ram(checkpoint("front-end"))
    arena = uform.Arena()
    with uform.Executor.for_ram(THREADS) as executor, ThreadPoolExecutor(THREADS) as pool:
        on = model.on(executor)
        for name in SOUNDS:
            files = sounds(name)
            sides: dict[str, Callable[[], object]] = {"uform": lambda files=files: on.audio_encode(files, arena)}
            if has("soundfile"):
                sides["soundfile, torch"] = on_threads(pool, by_soundfile, files)
            if has("av"):
                sides["PyAV, torch"] = on_threads(pool, by_av, files)
            if name == "Opus":
                sides.pop("soundfile, torch", None)  # It answers samples at 48 kHz, and resamples nothing.
            report(f"{FILES} recordings of {SECONDS} s, {name}, 16 kHz", sides, SECONDS, arguments.seconds)
        for name in CLIPS:
            files = clips(name)
            sides = {"uform": lambda files=files: on.video_encode(files, arena)}
            if has("av"):
                sides["PyAV"] = on_threads(pool, video_by_av, files)
            if has("torchcodec"):
                sides["torchcodec"] = on_threads(pool, video_by_torchcodec, files)
            title = f"{FILES} videos of {VIDEO_SECONDS} s, {name}, {SIZE[0]} x {SIZE[1]}, 30 frames a second"
            report(title, sides, VIDEO_SECONDS, arguments.seconds)


if __name__ == "__main__":
    main()
