"""What a file is, by its first bytes, never by its name."""

from __future__ import annotations

import re

from uform import Modality

NOUNS = {Modality.TEXT: "text", Modality.IMAGE: "picture", Modality.VIDEO: "video", Modality.AUDIO: "recording"}

IMAGE_BRANDS = (b"heic", b"heix", b"heif", b"hevc", b"mif1", b"msf1", b"avif", b"avis")
VIDEO_TRACK = re.compile(rb"hdlr.{8}vide|\x86[\x81-\xff]V_", re.DOTALL)
"""Of ISO files, a handler; of Matroska, a codec."""
AUDIO_TRACK = re.compile(rb"hdlr.{8}soun|\x86[\x81-\xff]A_", re.DOTALL)
MP3_KILOBITS = (
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
)
"""Of MPEG-2 and 2.5, and of MPEG-1."""
MP3_RATES = ((11025, 12000, 8000), (), (22050, 24000, 16000), (44100, 48000, 32000))
"""Of MPEG-2.5, none, MPEG-2 and MPEG-1."""


def kind_name(kind: Modality) -> str:
    """ "text", "image", "video" or "audio", for JSON."""
    return str(kind.name).lower()


def sniff(start: bytes) -> Modality:
    """What a file that starts so is, as far as its container tells; TEXT for all that is no media file.

    Whether an MP4 or WebM file is a video or a recording is known once its tracks are seen: see `sniff_tracks`.
    """
    if start.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")):
        return Modality.IMAGE
    if start.startswith((b"RIFF", b"RF64")):
        return {b"WEBP": Modality.IMAGE, b"WAVE": Modality.AUDIO}.get(start[8:12], Modality.TEXT)
    if start[4:8] == b"ftyp":
        return Modality.TEXT if start[8:12] in IMAGE_BRANDS else Modality.VIDEO
    if start.startswith(b"\x1a\x45\xdf\xa3"):
        return Modality.VIDEO
    if start.startswith((b"fLaC", b"OggS")) or _is_tag(start) or _is_mp3(start):
        return Modality.AUDIO
    return Modality.TEXT


def sniff_tracks(kind: Modality, data: bytes) -> Modality:
    """The same of a whole file: a container of videos that holds nothing but sound is a recording."""
    if kind == Modality.VIDEO and not VIDEO_TRACK.search(data) and AUDIO_TRACK.search(data):
        return Modality.AUDIO
    return kind


def _is_tag(start: bytes) -> bool:
    """An ID3v2 tag, which MP3 and FLAC files may have first."""
    return start.startswith(b"ID3") and len(start) >= 10 and 2 <= start[3] <= 4 and max(start[6:10]) < 0x80


def _is_mp3(start: bytes) -> bool:
    """Two frames on end, since a text may start as the first one does."""
    length = _frame_length(start)
    return bool(length) and bool(_frame_length(start[length:]) if len(start) >= length + 4 else b"\0" in start)


def _frame_length(header: bytes) -> int:
    """Bytes of the frame of MPEG's layer III that starts so; 0 where none does."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE6 != 0xE2:
        return 0
    version, bits, rate = header[1] >> 3 & 3, header[2] >> 4, header[2] >> 2 & 3
    if version == 1 or bits in (0, 15) or rate == 3:
        return 0
    is_first = version == 3
    bits_a_frame = MP3_KILOBITS[is_first][bits] * 1000 * (144 if is_first else 72)
    return bits_a_frame // MP3_RATES[version][rate] + (header[2] >> 1 & 1)
