"""Verification: whether whoever sends a body has the secret, over its bytes as they came."""

import hmac
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import StrEnum

from wakeful.vocabulary.record import Record

SKEW_MS = 300_000  # how far a sender's clock may be from ours, and how long a request is new
MOST_SIGNATURES = 16  # that are looked at: one for each secret of the sender
LONGEST_TIME = 12  # digits

STANDARD_ID, STANDARD_TIME = "webhook-id", "webhook-timestamp"
STANDARD_SIGNATURE = "webhook-signature"
GITHUB_ID, GITHUB_SIGNATURE = "x-github-delivery", "x-hub-signature-256"
AUTHORIZATION = "authorization"


class Scheme(StrEnum):
    """How a sender proves that it has the secret."""

    STANDARD = "standard-webhooks"
    GITHUB = "github"
    HMAC = "hmac"  # SHA-256 over the body, in a header of the sender's choice
    BEARER = "bearer"  # the secret itself, as a bearer token


class Unproven(StrEnum):
    """Why a request is not believed; its sender is never told which."""

    SIGNATURE = "signature"
    TOO_OLD = "too-old"  # or from the future


class Proved(Record):
    """A request whose sender has the secret."""

    delivery_id: str | None  # by which the scheme names a delivery, the same at every attempt


class Proof(Record):
    """What a sender must prove, and by which means."""

    scheme: Scheme
    keys: tuple[bytes, ...]  # each of them is good: secrets are exchanged one after the other
    header: str = ""  # of `hmac`, in lower case

    def __repr__(self) -> str:
        return f"Proof({self.scheme.value!r})"  # never the keys: it may stand in a traceback


def verify(proof: Proof, headers: Mapping[str, str], body: bytes, now: int) -> Proved | Unproven:
    """Tell whether a request is proved; every key is tried, whichever of them fits."""
    match proof.scheme:
        case Scheme.STANDARD:
            return _standard(proof.keys, headers, body, now)
        case Scheme.GITHUB:
            given = headers.get(GITHUB_SIGNATURE, "")
            wanted = [b"sha256=" + _hex(mac) for mac in _macs(proof.keys, body)]
            return _proved(headers.get(GITHUB_ID)) if _fits(given, wanted) else Unproven.SIGNATURE
        case Scheme.HMAC:
            given = headers.get(proof.header, "").removeprefix("sha256=")
            macs = _macs(proof.keys, body)
            wanted = [text for mac in macs for text in (_hex(mac), b64encode(mac))]
            return _proved(None) if _fits(given, wanted) else Unproven.SIGNATURE
        case Scheme.BEARER:
            scheme, _, given = headers.get(AUTHORIZATION, "").partition(" ")
            is_good = _fits(given.strip(), proof.keys) and scheme.lower() == "bearer"
            return _proved(None) if is_good else Unproven.SIGNATURE


def signed(proof: Proof, delivery_id: str, body: bytes, now: int) -> dict[str, str]:
    """Return the headers by which a sender with the first of the keys proves itself."""
    key = proof.keys[:1]
    match proof.scheme:
        case Scheme.STANDARD:
            time = str(now // 1000)
            [mac] = _macs(key, _standard_content(delivery_id, time, body))
            signature = f"v1,{b64encode(mac).decode()}"
            ids = {STANDARD_ID: delivery_id, STANDARD_TIME: time}
            return {**ids, STANDARD_SIGNATURE: signature}
        case Scheme.GITHUB:
            [mac] = _macs(key, body)
            return {GITHUB_ID: delivery_id, GITHUB_SIGNATURE: f"sha256={mac.hex()}"}
        case Scheme.HMAC:
            [mac] = _macs(key, body)
            return {proof.header: mac.hex()}
        case Scheme.BEARER:
            return {AUTHORIZATION: f"Bearer {key[0].decode()}"}


def _standard(
    keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: int
) -> Proved | Unproven:
    delivery_id, time = headers.get(STANDARD_ID, ""), headers.get(STANDARD_TIME, "")
    content = _standard_content(delivery_id, time, body)
    wanted = [b"v1," + b64encode(mac) for mac in _macs(keys, content)]
    given = headers.get(STANDARD_SIGNATURE, "").split(" ")[:MOST_SIGNATURES]
    is_signed = any([_fits(one, wanted) for one in given])
    # With a full stop in it, what is signed could be read as another id, time and body.
    is_named = bool(delivery_id) and "." not in delivery_id
    is_time = time.isascii() and time.isdecimal() and len(time) <= LONGEST_TIME
    if not (is_signed and is_named and is_time):
        return Unproven.SIGNATURE
    return _proved(delivery_id) if abs(now - int(time) * 1000) <= SKEW_MS else Unproven.TOO_OLD


def _standard_content(delivery_id: str, time: str, body: bytes) -> bytes:
    return b".".join((_bytes(delivery_id), _bytes(time), body))


def _macs(keys: Sequence[bytes], content: bytes) -> list[bytes]:
    return [hmac.digest(key, content, "sha256") for key in keys]


def _fits(given: str, wanted: Sequence[bytes]) -> bool:
    """Tell whether a text is one of those, in a time that tells nothing about which."""
    # A list: `any` would otherwise stop at the first that fits.
    return any([hmac.compare_digest(_bytes(given), one) for one in wanted])


def _proved(delivery_id: str | None) -> Proved:
    return Proved(delivery_id=delivery_id or None)


def _hex(mac: bytes) -> bytes:
    return mac.hex().encode()


def _bytes(header: str) -> bytes:
    """Return a header as it came."""
    return header.encode("latin-1", "replace")
