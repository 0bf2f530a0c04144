"""Media: what bytes are, told by the bytes themselves and never by their name."""

import codecs
import re
import struct

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
DOCUMENT = "application/pdf"
TEXT = "text/plain"

HEAD = 48  # bytes that tell what something is

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", DOCUMENT),
)
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Markers of a JPEG that begin the part with its size: all SOFn but DHT, JPG and DAC.
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def media_type_of(head: bytes) -> str | None:
    """Return the media type of an image or a document by its first bytes."""
    for beginning, media_type in _BEGINNINGS:
        if head.startswith(beginning):
            return media_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def text_of(data: bytes, media_type: str, *, is_whole: bool = True) -> str | None:
    """Return bytes as text, or None if they are none; a part may end within a character."""
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data, final=is_whole)
    except UnicodeDecodeError:
        if not media_type.startswith("text/"):
            return None
        text = data.decode("cp1252", "replace")  # as it is written where UTF-8 is not
    return None if _UNREADABLE.search(text) else text


def dimensions(data: bytes, media_type: str) -> tuple[int, int] | None:
    """Return the width and height of an image, or None if it cannot be one."""
    try:
        match media_type:
            case "image/png":
                found = struct.unpack(">II", data[16:24]) if data[12:16] == b"IHDR" else None
            case "image/gif":
                found = struct.unpack("<HH", data[6:10])
            case "image/webp":
                found = _webp(data)
            case _:
                found = _jpeg(data)
    except struct.error:
        return None
    return (found[0], found[1]) if found and found[0] > 0 and found[1] > 0 else None


def _webp(data: bytes) -> tuple[int, ...] | None:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(
                data[27:30], "little"
            )
        case b"VP8L":
            bits = struct.unpack("<I", data[21:25])[0]
            return 1 + (bits & 0x3FFF), 1 + ((bits >> 14) & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None


def _jpeg(data: bytes) -> tuple[int, ...] | None:
    """Walk the segments of a JPEG to the one that tells its size."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:  # filling, or no length
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SIZES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None
