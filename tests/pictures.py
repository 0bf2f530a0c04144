"""Small files of every kind that a model may be shown."""

import base64
import struct
import zlib

from wakeful.vocabulary.stimulus import Attachment


def png(width: int = 2, height: int = 2, shade: int = 0) -> bytes:
    """Return a whole PNG of one shade of grey."""
    rows = b"".join(b"\x00" + bytes([shade]) * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )


def jpeg(width: int, height: int) -> bytes:
    """Return how a JPEG begins, down to the part with its size."""
    size = struct.pack(">HBHHB", 8 + 3, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff\xe0\x00\x04\x00\x00\xff\xff\xc0" + size + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00;"


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = b"VP8X" + struct.pack("<I", 10) + b"\x00\x00\x00\x00" + size
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


PDF = b"%PDF-1.4\n1 0 obj << >> endobj\ntrailer << >>\n%%EOF\n"


def attachment(content: bytes, name: str = "a.png", media_type: str = "image/png") -> Attachment:
    return Attachment(name=name, media_type=media_type, data=base64.b64encode(content).decode())


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
