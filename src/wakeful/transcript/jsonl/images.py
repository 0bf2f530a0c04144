"""Images in the lines of a file: their bytes are kept once, by hash, and leave as they came.

Their format knows images alone; whatever else is attached leaves in the field of our own.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from wakeful.vocabulary.entry import Body, ToolBody, UserBody
from wakeful.vocabulary.media import IMAGES
from wakeful.vocabulary.stimulus import KeptAttachment, ReadyAttachment
from wakeful.vocabulary.text import is_plain

OURS_FILES = "files"  # in the field of our own: base64 by hash
LONGEST_NAME = 256

_BASE64 = re.compile(r"[A-Za-z0-9+/]++={0,2}")
_MARK = "wakeful:sha256:"  # stands in a kept line where base64 was
_QUOTED = re.compile(r'"([A-Za-z0-9+/]++={0,2})"')
_MARKED = re.compile(rf'"{_MARK}([0-9a-f]{{64}})"')

Object = dict[str, Any]


def is_image(block: Mapping[str, Any]) -> bool:
    """Tell whether a block is an image whose bytes can be kept and written again as they were."""
    data, kind = _content_of(block)
    return (
        block.get("type") == "image"
        and isinstance(kind, str)
        and 0 < len(kind) <= LONGEST_NAME
        and is_plain(kind)
        and isinstance(data, str)
        and _is_canonical(data)
    )


def _content_of(block: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the base64 of an image and what it is; Anthropic's blocks have a `source` for it."""
    source = block.get("source")
    if isinstance(source, dict):
        source_fields = cast("Object", source)
        is_here = source_fields.get("type") == "base64"
        return (
            (source_fields.get("data"), source_fields.get("media_type"))
            if is_here
            else (None, None)
        )
    return block.get("data"), block.get("mimeType")


def found_in(line: Mapping[str, Any]) -> list[ReadyAttachment]:
    """Return what a line brings along: the images of its content, and what our field holds."""
    message = line.get("message")
    content = cast("Object", message).get("content") if isinstance(message, dict) else None
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    images = [cast("Object", one) for one in blocks if isinstance(one, dict)]
    found = [
        _measured(f"image-{at}.{kind.partition('/')[2]}", kind, data)
        for at, (data, kind) in enumerate(map(_content_of, filter(is_image, images)), 1)
    ]
    ours = line.get("wakeful")
    files = cast("Object", ours).get(OURS_FILES) if isinstance(ours, dict) else None
    for data in cast("Object", files).values() if isinstance(files, dict) else ():
        if isinstance(data, str) and _is_canonical(data):
            found.append(_measured("file", "application/octet-stream", data))
    return list({one.hash: one for one in found}.values())


def with_attachments(body: Body, line: Mapping[str, Any]) -> Body:
    """Return what a line says together with what it brings; a hash without its bytes is dropped.

    Else a file could name what somebody else has sent, and so get at it.
    """
    if not isinstance(body, UserBody | ToolBody):
        return body
    claimed = body.attachments if isinstance(body, UserBody) else body.message.attachments
    brought: dict[str, KeptAttachment] = {one.hash: kept(one) for one in found_in(line)}
    named = {one.hash: one for one in claimed if _is_true(one, brought.get(one.hash))}
    attachments = tuple((brought | named).values())
    if isinstance(body, UserBody):
        return replace(body, attachments=attachments)
    return replace(body, message=replace(body.message, attachments=attachments))


def blocks(attachments: Sequence[KeptAttachment], contents: Mapping[str, str]) -> list[Object]:
    """Return the images among attachments as blocks of their format."""
    return [
        {"type": "image", "data": contents[one.hash], "mimeType": one.media_type}
        for one in attachments
        if one.hash in contents and one.media_type in IMAGES
    ]


def files(attachments: Sequence[KeptAttachment], contents: Mapping[str, str]) -> Object:
    """Return what is attached and no image, as our own field holds it."""
    return {
        one.hash: contents[one.hash]
        for one in attachments
        if one.hash in contents and one.media_type not in IMAGES
    }


def kept(ready: ReadyAttachment) -> KeptAttachment:
    return KeptAttachment(
        name=ready.name, media_type=ready.media_type, size=ready.size, hash=ready.hash
    )


def folded(line: str, brought: Iterable[ReadyAttachment]) -> str:
    """Return a line without the base64 that is kept elsewhere; `unfolded` gives it back."""
    if _MARK in line:
        return line
    names = {one.data: one.hash for one in brought}
    if not names:
        return line
    # One pass, however many images a line has.
    return _QUOTED.sub(
        lambda found: f'"{_MARK}{names[found[1]]}"' if found[1] in names else found[0], line
    )


def unfolded(line: str, contents: Mapping[str, str]) -> str:
    """Return a line as it came; one that was not folded still has its base64."""
    if _MARK not in line:
        return line
    known = frozenset(contents.values())
    if any(found[1] in known for found in _QUOTED.finditer(line)):
        return line
    return _MARKED.sub(
        lambda found: f'"{contents[found[1]]}"' if found[1] in contents else found[0], line
    )


def canonical(contents: Mapping[str, str]) -> dict[str, str]:
    """Return base64 as every writer writes it: senders may write the last digit otherwise."""
    return {
        name: data if _is_canonical(data) else base64.b64encode(base64.b64decode(data)).decode()
        for name, data in contents.items()
    }


def _measured(name: str, media_type: str, data: str) -> ReadyAttachment:
    content = binascii.a2b_base64(data)
    digest = hashlib.sha256(content).hexdigest()
    return ReadyAttachment(
        name=name, media_type=media_type, size=len(content), hash=digest, data=data
    )


def _is_canonical(data: str) -> bool:
    if len(data) % 4 or not _BASE64.fullmatch(data):
        return False
    end = data[-4:]
    return base64.b64encode(binascii.a2b_base64(end)).decode() == end


def _is_true(claimed: KeptAttachment, brought: KeptAttachment | None) -> bool:
    names = (claimed.name, claimed.media_type)
    return (
        brought is not None
        and claimed.size == brought.size
        and all(0 < len(one) <= LONGEST_NAME and is_plain(one) for one in names)
    )
