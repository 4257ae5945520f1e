"""Clips whose contents are known, for the tests: `python tests/clip_files.py FOLDER`.

Made by FFmpeg from its own sources, and by soundfile; speech by espeak-ng. What is in each is told where it is made.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile

SIZE = "64x48"


def ffmpeg(*arguments: str | Path) -> None:
    """Runs FFmpeg, quietly; it must succeed."""
    command = ["ffmpeg", "-nostdin", "-y", "-v", "error", *map(str, arguments)]
    outcome = subprocess.run(command, capture_output=True, text=True)
    if outcome.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{outcome.stderr}")


def colours(rate: int = 30, size: str = SIZE, every: float = 0.5) -> list[str]:
    """Input of two seconds: red, green, blue and white, for half a second each."""
    sources = [f"color=c={name}:s={size}:r={rate}:d={every}" for name in ("red", "lime", "blue", "white")]
    joined = ";".join(f"{source}[{index}]" for index, source in enumerate(sources))
    return ["-f", "lavfi", "-i", f"{joined};[0][1][2][3]concat=n=4"]


def corners(size: str = SIZE) -> list[str]:
    """Input of one second: quarters, red at the top left, green, blue at the bottom left, white."""
    width, height = (int(side) // 2 for side in size.split("x"))
    boxes = ",".join(
        f"drawbox=x={x}:y={y}:w={width + 1}:h={height + 1}:c={name}:t=fill"
        for x, y, name in ((0, 0, "red"), (width, 0, "lime"), (0, height, "blue"), (width, height, "white"))
    )
    return ["-f", "lavfi", "-i", f"color=c=black:s={size}:r=10:d=1,format=gbrp,{boxes}"]


def write_videos(folder: Path) -> None:
    """Videos of the colours or the corners."""
    h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "12"]
    yuv = ["-pix_fmt", "yuv420p"]
    vp9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-crf", "10", "-b:v", "0"]
    # Frames that are reordered, with an edit list for their delay.
    ffmpeg(*colours(), "-c:v", "libx264", "-bf", "3", "-g", "20", "-crf", "12", *yuv, folder / "h264.mp4")
    hevc = ["-c:v", "libx265", "-x265-params", "log-level=none", "-preset", "fast", "-crf", "12"]
    ffmpeg(*colours(), *hevc, *yuv, folder / "hevc.mp4")
    ffmpeg(*colours(), *hevc, "-pix_fmt", "yuv420p10le", folder / "hevc_10bit.mp4")
    ffmpeg(*colours(), "-c:v", "libvpx", "-crf", "10", "-b:v", "1M", *yuv, folder / "vp8.webm")
    ffmpeg(*colours(), *vp9, *yuv, folder / "vp9.webm")
    ffmpeg(*colours(), *vp9, "-pix_fmt", "yuv420p10le", folder / "vp9_10bit.webm")
    av1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-crf", "20", "-b:v", "0"]
    ffmpeg(*colours(), *av1, *yuv, folder / "av1.webm")
    ffmpeg("-i", folder / "av1.webm", "-c", "copy", folder / "av1.mp4")
    ffmpeg("-i", folder / "vp9.webm", "-c", "copy", folder / "vp9.mp4")

    copy = ["-i", folder / "h264.mp4", "-c", "copy"]
    ffmpeg(*copy, folder / "h264.mkv")
    ffmpeg(*copy, "-movflags", "frag_keyframe+empty_moov", folder / "fragments.mp4")
    ffmpeg(*copy, "-movflags", "faststart", folder / "faststart.mp4")
    ffmpeg("-i", folder / "vp9.webm", "-c", "copy", "-live", "1", folder / "live.webm")
    ffmpeg("-i", folder / "vp9.webm", "-c", "copy", "-output_ts_offset", "7", folder / "late.webm")
    # The edit list starts in the middle of a group of pictures: green at 0, blue from 0.25 s on.
    ffmpeg("-ss", "0.75", *copy, folder / "cut.mp4")
    # Frames of the colours at 0, 0.1, 0.6, 1.1, 1.5 and 1.9 s only.
    kept = "+".join(f"eq(n,{frame})" for frame in (0, 2, 12, 22, 30, 38))
    ffmpeg(*colours(20), "-vf", f"select='{kept}'", "-vsync", "vfr", *h264, *yuv, folder / "uneven.mp4")
    ffmpeg("-i", folder / "uneven.mp4", "-c", "copy", folder / "uneven.mkv")
    # Slower than the sampling: a frame a second.
    ffmpeg("-f", "lavfi", "-i", f"color=c=red:s={SIZE}:r=1:d=3", *h264, *yuv, folder / "slow.mp4")
    ffmpeg("-f", "lavfi", "-i", f"color=c=red:s={SIZE}:r=25:d=0.04", *h264, *yuv, folder / "one.mp4")

    ffmpeg(*corners(), *h264, *yuv, folder / "corners.mp4")
    for degrees in (90, 180, 270):  # Counterclockwise.
        turn = ["-metadata:s:v", f"rotate={degrees}"]
        ffmpeg("-i", folder / "corners.mp4", "-c", "copy", *turn, folder / f"turned_{degrees}.mp4")
    ffmpeg(*corners("63x47"), *h264, "-pix_fmt", "yuv444p", folder / "odd.mp4")
    ffmpeg(*corners("63x47"), *vp9, *yuv, folder / "odd.webm")
    ffmpeg(*corners(), "-vf", "setsar=2", *h264, *yuv, folder / "wide_pixels.mp4")
    # A colour that every matrix and range would show otherwise: (200, 60, 30).
    orange = ["-f", "lavfi", "-i", f"color=c=0xC83C1E:s={SIZE}:r=10:d=1,format=gbrp"]
    for matrix, tag in (("bt601", "smpte170m"), ("bt709", "bt709"), ("bt2020", "bt2020nc")):
        for span, name in (("tv", "limited"), ("pc", "full")):
            scaled = f"scale=out_color_matrix={matrix}:out_range={span},format=yuv444p"
            tags = ["-colorspace", tag, "-color_range", span]
            ffmpeg(*orange, "-vf", scaled, *tags, *h264, folder / f"orange_{matrix}_{name}.mp4")

    tone = ["-f", "lavfi", "-i", "sine=frequency=1000:sample_rate=48000:duration=1"]
    cover = folder / "cover.png"
    ffmpeg("-f", "lavfi", "-i", "color=c=red:s=32x32:d=1:r=1", "-frames:v", "1", cover)
    ffmpeg(
        *("-i", cover, *tone, "-i", folder / "vp9.mp4", "-map", "0", "-map", "1", "-map", "2"),
        *("-c:v", "copy", "-c:a", "libopus", "-disposition:v:0", "attached_pic", folder / "cover.mp4"),
    )
    ffmpeg("-i", cover, *tone, "-map", "0", "-map", "1", "-c:v", "copy", "-c:a", "libmp3lame", folder / "cover.mp3")
    ffmpeg(*colours(), "-c:v", "mpeg4", *yuv, folder / "mpeg4.mp4")


def tone(rate: int, count: int, hertz: float = 1000, level: float = 0.5) -> np.ndarray:
    """[count] a sine."""
    return level * np.sin(2 * np.pi * hertz * np.arange(count) / rate)


def write_recordings(folder: Path) -> None:
    """A second or so of 1 kHz at half of full scale, in every kind of sample, rate and codec."""
    for rate in (8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000):
        soundfile.write(folder / f"tone_{rate}.wav", tone(rate, rate), rate, subtype="PCM_16")
    for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"):
        soundfile.write(folder / f"{subtype.lower()}.wav", tone(16000, 12345), 16000, subtype=subtype)
    for subtype in ("PCM_16", "PCM_24"):
        soundfile.write(folder / f"{subtype.lower()}.flac", tone(16000, 12345), 16000, subtype=subtype)
    # Left at 0.5, right silent: 0.25 together. Six channels of which one sounds: a sixth.
    stereo = np.stack([tone(16000, 12345), np.zeros(12345)], axis=1)
    soundfile.write(folder / "stereo.wav", stereo, 16000, subtype="PCM_16")
    soundfile.write(folder / "stereo.flac", stereo, 16000, subtype="PCM_16")
    six = np.zeros((12345, 6))
    six[:, 3] = tone(16000, 12345)
    soundfile.write(folder / "six.wav", six, 16000, subtype="PCM_16")
    soundfile.write(folder / "empty.wav", np.zeros(0), 16000, subtype="PCM_16")
    soundfile.write(folder / "single.wav", np.full(1, 0.5), 16000, subtype="PCM_16")
    broken = tone(16000, 1000)
    broken[500] = np.nan
    soundfile.write(folder / "not_finite.wav", broken, 16000, subtype="FLOAT")

    # 1.2 s at 48 kHz, 57,600 samples, of which encoders pad and delay; 19,200 at 16 kHz.
    source = folder / "source_48000.wav"
    soundfile.write(source, tone(48000, 57600), 48000, subtype="PCM_16")
    encode = ["-i", source, "-b:a", "96k"]
    ffmpeg(*encode, "-c:a", "libmp3lame", folder / "tone.mp3")
    ffmpeg(*encode, "-c:a", "libopus", folder / "tone.opus")
    ffmpeg(*encode, "-c:a", "libopus", folder / "tone.webm")
    ffmpeg(*encode, "-c:a", "libopus", folder / "tone_opus.mp4")
    ffmpeg(*encode, "-c:a", "flac", "-strict", "-2", folder / "tone_flac.mp4")
    ffmpeg(*encode, "-c:a", "libmp3lame", folder / "tone_mp3.mp4")
    ffmpeg(*encode, "-c:a", "flac", folder / "tone_flac.mkv")
    ffmpeg(*encode, "-c:a", "pcm_s16le", folder / "tone_pcm.mkv")
    ffmpeg(*encode, "-c:a", "flac", folder / "tone_flac.ogg")
    ffmpeg(*encode, "-c:a", "libmp3lame", "-ar", "22050", folder / "tone_22050.mp3")
    ffmpeg(*encode, "-c:a", "aac", folder / "aac.mp4")
    ffmpeg(*encode, "-c:a", "libvorbis", folder / "vorbis.ogg")
    subprocess.run(["espeak-ng", "-w", str(folder / "speech.wav"), "The number is seven."], check=True)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_videos(folder)
    write_recordings(folder)


if __name__ == "__main__":
    main()
