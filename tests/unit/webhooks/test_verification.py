"""Verification of each scheme: the published examples, and each of them with one thing changed."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from wakeful.webhooks.verification import Proof, Proved, Scheme, Unproven, verify

# https://github.com/standard-webhooks/standard-webhooks: the vector that its libraries share.
STANDARD_KEY = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD_AT_S = 1614265330
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(STANDARD_AT_S),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
# https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
GITHUB_KEY = b"It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB = {
    "x-hub-signature-256": "sha256="
    "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
}
OTHER_KEY = b"another secret of this sender"
NOW = STANDARD_AT_S * 1000
BEARER = {"authorization": "Bearer a-token-of-many-letters"}


def standard(*keys: bytes) -> Proof:
    return Proof(scheme=Scheme.STANDARD, keys=keys or (STANDARD_KEY,))


def test_the_published_example_of_standard_webhooks_is_proved():
    proved = verify(standard(), STANDARD, STANDARD_BODY, NOW)

    assert proved == Proved(delivery_id="msg_p5jXN8AQM9LWM0D4loKWxJek")


def test_the_published_example_of_github_is_proved():
    proof = Proof(scheme=Scheme.GITHUB, keys=(GITHUB_KEY,))

    assert verify(proof, GITHUB, GITHUB_BODY, NOW) == Proved(
        delivery_id="72d3162e-cc78-11e3-81ab-4c9367dc0958"
    )


@given(st.binary(min_size=24, max_size=64), st.text(), st.uuids())
def test_what_the_official_library_signs_is_proved(key: bytes, body: str, delivery: object):
    body = body.encode("utf-8", "replace").decode()
    at = datetime.fromtimestamp(STANDARD_AT_S, UTC)
    headers = {
        "webhook-id": f"msg_{delivery}",
        "webhook-timestamp": str(STANDARD_AT_S),
        "webhook-signature": Webhook(key).sign(f"msg_{delivery}", at, body),
    }

    assert isinstance(verify(standard(key), headers, body.encode(), NOW), Proved)


@given(st.integers(0, len(STANDARD_BODY) * 8 - 1))
def test_a_flipped_bit_of_the_body_is_refused(bit: int):
    body = bytearray(STANDARD_BODY)
    body[bit // 8] ^= 1 << bit % 8

    assert verify(standard(), STANDARD, bytes(body), NOW) is Unproven.SIGNATURE


@pytest.mark.parametrize(
    ("late_s", "verdict"),
    [
        (0, Proved),
        (300, Proved),
        (301, Unproven.TOO_OLD),
        (-300, Proved),
        (-301, Unproven.TOO_OLD),
        (10**9, Unproven.TOO_OLD),
    ],
)
def test_a_delivery_is_new_for_five_minutes(late_s: int, verdict: object):
    found = verify(standard(), STANDARD, STANDARD_BODY, NOW + late_s * 1000)

    assert found is verdict or type(found) is verdict


def test_each_active_secret_is_good_and_a_sender_may_sign_with_several():
    theirs = STANDARD["webhook-signature"]
    several = STANDARD | {"webhook-signature": f"v1,AAAA v1a,{theirs[3:]} {theirs}"}

    assert isinstance(
        verify(standard(OTHER_KEY, STANDARD_KEY), STANDARD, STANDARD_BODY, NOW), Proved
    )
    assert isinstance(verify(standard(), several, STANDARD_BODY, NOW), Proved)
    assert verify(standard(OTHER_KEY), STANDARD, STANDARD_BODY, NOW) is Unproven.SIGNATURE


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_other"},
        {"webhook-id": ""},
        {"webhook-timestamp": str(STANDARD_AT_S + 1)},
        {"webhook-timestamp": f"{STANDARD_AT_S}.0"},
        {"webhook-timestamp": ""},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": STANDARD["webhook-signature"][3:]},
        {"webhook-signature": STANDARD["webhook-signature"].rstrip("=")},
        {"webhook-signature": STANDARD["webhook-signature"].replace("+", "-").replace("/", "_")},
        {"webhook-signature": STANDARD["webhook-signature"].replace("v1", "v2")},
        {"webhook-signature": "v1," + base64.b64decode("g0hM9SsE").hex()},
        {"webhook-signature": "v1,\udcff\u2028"},
    ],
)
def test_another_header_or_a_signature_written_otherwise_is_refused(changed: dict[str, str]):
    assert verify(standard(), STANDARD | changed, STANDARD_BODY, NOW) is Unproven.SIGNATURE


def test_a_full_stop_in_an_id_moves_no_border_of_what_was_signed():
    body = f"{STANDARD_AT_S}.rest".encode()
    at = datetime.fromtimestamp(1, UTC)
    signature = Webhook(STANDARD_KEY).sign("msg", at, body.decode())
    moved = {
        "webhook-id": "msg.1",
        "webhook-timestamp": str(STANDARD_AT_S),
        "webhook-signature": signature,
    }

    assert verify(standard(), moved, b"rest", NOW) is Unproven.SIGNATURE


@pytest.mark.parametrize("written", ["hex", "base64", "sha256=hex"])
def test_an_hmac_is_read_from_the_named_header(written: str):
    proof = Proof(scheme=Scheme.HMAC, keys=(OTHER_KEY, GITHUB_KEY), header="x-signature")
    mac = hmac.new(GITHUB_KEY, b"body", hashlib.sha256).digest()
    texts = {"hex": mac.hex(), "base64": base64.b64encode(mac).decode()}
    text = texts.get(written) or f"sha256={mac.hex()}"

    assert verify(proof, {"x-signature": text}, b"body", NOW) == Proved(delivery_id=None)
    assert verify(proof, {"x-other": text}, b"body", NOW) is Unproven.SIGNATURE
    assert verify(proof, {"x-signature": text}, b"bodY", NOW) is Unproven.SIGNATURE
    assert verify(proof, {"x-signature": ""}, b"body", NOW) is Unproven.SIGNATURE


@pytest.mark.parametrize(
    ("header", "is_good"),
    [
        ("Bearer a-token-of-many-letters", True),
        ("bearer  a-token-of-many-letters ", True),
        ("a-token-of-many-letters", False),
        ("Basic a-token-of-many-letters", False),
        ("Bearer a-token-of-many-letter", False),
        ("Bearer ", False),
        ("", False),
    ],
)
def test_a_bearer_shows_the_secret_itself(header: str, is_good: bool):
    proof = Proof(scheme=Scheme.BEARER, keys=(OTHER_KEY, b"a-token-of-many-letters"))

    found = verify(proof, {"authorization": header}, b"whatever", NOW)

    assert isinstance(found, Proved) is is_good


@pytest.mark.parametrize("scheme", Scheme)
def test_without_a_key_nothing_is_proved(scheme: Scheme):
    everything = STANDARD | GITHUB | BEARER | {"": "", "x-signature": ""}

    assert verify(Proof(scheme=scheme, keys=()), everything, STANDARD_BODY, NOW) in Unproven


def test_what_must_be_proved_never_shows_its_keys():
    assert "Secret" not in repr(Proof(scheme=Scheme.GITHUB, keys=(GITHUB_KEY,)))
