"""What bytes are is told by the bytes, never by their name."""

import pytest

from tests.pictures import PDF, gif, jpeg, png, webp
from wakeful.vocabulary.media import dimensions, media_type_of, text_of

PICTURES = {
    "image/png": png(7, 5),
    "image/jpeg": jpeg(7, 5),
    "image/gif": gif(7, 5),
    "image/webp": webp(7, 5),
}


@pytest.mark.parametrize(("media_type", "data"), PICTURES.items())
def test_an_image_is_known_by_its_first_bytes(media_type: str, data: bytes):
    assert media_type_of(data[:48]) == media_type
    assert dimensions(data, media_type) == (7, 5)


@pytest.mark.parametrize(("media_type", "data"), PICTURES.items())
def test_a_broken_image_never_raises_and_a_headless_one_has_no_size(media_type: str, data: bytes):
    for length in range(len(data)):
        dimensions(data[:length], media_type)

    assert dimensions(data[:9], media_type) is None


@pytest.mark.parametrize(
    ("chunk", "size"),
    [
        (b"VP8L" + bytes(4) + b"\x2f" + (6 | 4 << 14).to_bytes(4, "little"), (7, 5)),
        (b"VP8 " + bytes(10) + b"\x07\x00\x05\x00", (7, 5)),
        (b"ABCD" + bytes(20), None),
    ],
)
def test_every_kind_of_webp_tells_its_size(chunk: bytes, size: tuple[int, int] | None):
    data = b"RIFF" + bytes(4) + b"WEBP" + chunk

    assert dimensions(data, "image/webp") == size


def test_a_document_is_known_and_a_page_of_the_web_is_text():
    assert media_type_of(PDF) == "application/pdf"
    assert media_type_of(b"<html>") is None


@pytest.mark.parametrize(
    ("data", "media_type", "text"),
    [
        (b"plain", "application/octet-stream", "plain"),
        ("\ufeffäöü".encode(), "text/plain", "äöü"),
        ("wide".encode("utf-16"), "text/plain", "wide"),
        (b"caf\xe9", "text/csv", "café"),
        (b"caf\xe9", "application/octet-stream", None),
        (b"\x00\x01\x02", "text/plain", None),
        (b"MZ\x00\x03", "application/x-msdownload", None),
    ],
)
def test_text_is_what_can_be_read(data: bytes, media_type: str, text: str | None):
    assert text_of(data, media_type) == text


def test_a_part_of_a_text_may_end_within_a_character():
    assert text_of("é".encode()[:1], "text/plain", is_whole=False) == ""
    assert text_of("aé".encode()[:2], "application/json", is_whole=False) == "a"
