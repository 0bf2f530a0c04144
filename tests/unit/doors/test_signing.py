"""Signatures are those of the published scheme, and several keys may be in use at once."""

import base64
import hashlib
import hmac

import pytest

from wakeful.doors.signing import read_keys, sign
from wakeful.vocabulary.errors import InvalidInput

# From the scheme's own test suites.
SECRET = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
BODY = b'{"test": 2432232314}'
AT_MS = 1_614_265_330_000
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", [SECRET, f"whsec_{SECRET}", f"  whsec_{SECRET}\n"])
def test_the_published_vector_comes_out(secret: str):
    headers = sign(read_keys(secret), MESSAGE_ID, BODY, AT_MS)

    assert headers == {
        "webhook-id": MESSAGE_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_each_key_signs_in_the_order_given():
    other = base64.b64encode(b"k" * 32).decode()

    headers = sign(read_keys(f"whsec_{other}\n{SECRET}"), MESSAGE_ID, BODY, AT_MS + 999)

    signed = f"{MESSAGE_ID}.1614265330.".encode() + BODY
    digest = hmac.new(b"k" * 32, signed, hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(digest).decode()} {SIGNATURE}"
    assert headers["webhook-signature"] == expected


def test_the_very_bytes_of_the_body_are_signed():
    body = '{"text": "grüße\\u0000 \U0001f600"}'.encode()

    headers = sign([b"k" * 24], "dl_1", body, AT_MS)

    digest = hmac.new(b"k" * 24, b"dl_1.1614265330." + body, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_a_secret_may_lack_its_padding():
    padded = base64.b64encode(b"k" * 25).decode()

    assert read_keys(padded) == read_keys(padded.rstrip("=")) == (b"k" * 25,)


@pytest.mark.parametrize(
    "secret",
    ["canary", "whsec_", "not/base64!" * 4, "A" * 28, "A" * 200, f"{SECRET} canary", "ä" * 40],
)
def test_a_secret_that_is_none_is_refused_and_not_repeated(secret: str):
    with pytest.raises(InvalidInput, match=r"outbound\.crm\.secret: must be 24 to 64") as caught:
        read_keys(secret, "outbound.crm.secret")

    assert "canary" not in str(caught.value)


def test_no_secret_is_no_secret():
    with pytest.raises(InvalidInput, match="must not be empty"):
        read_keys(" \n")
