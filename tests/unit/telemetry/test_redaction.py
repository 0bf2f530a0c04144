"""No secret is left in a text, whether it was told or only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.access.tokens import new_secret
from wakeful.models.providers import PROVIDERS
from wakeful.telemetry.redaction import HIDDEN, Redaction, secrets_in

SECRET = "canary/secret+1"


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"before{SECRET}after",
        f"https://a.example/?x={SECRET}",
        "percent-encoded: canary%2Fsecret%2B1",
        f"{SECRET}-longer, {SECRET}",
    ],
)
def test_a_secret_that_is_known_is_hidden_wherever_it_stands(text: str):
    hidden = Redaction(["", SECRET, f"{SECRET}-longer"]).hide(text)

    assert "canary" not in hidden
    assert "longer" not in hidden
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer canary-canary",
        "authorization: canary-canary",
        "{'authorization': 'Bearer canary-canary'}",
        "[(b'authorization', b'Basic canary-canary')]",
        '{"Authorization": "canary-canary"}',
        "Proxy-Authorization: Basic canary-canary==",
        "it sent Bearer canary-canary, which is wrong",
        "Cookie: a=canary; wakeful=canary",
        "set-cookie: wakeful=canary; HttpOnly",
        "(b'cookie', b'wakeful=canary')",
        "X-Api-Key: canary-canary",
        "x-goog-api-key: canary-canary",
        "GET /api/sessions?limit=1&token=canary HTTP/1.1",
        "http://127.0.0.1:8484/#code=canary",
        "https://a.example/v1?key=canary&alt=sse",
        "postgresql://me:canary@127.0.0.1/db is gone",
        "whsec_canarycanarycanary",
    ],
)
def test_what_looks_like_a_credential_is_hidden_with_its_name_kept(text: str):
    hidden = Redaction().hide(text)

    assert "canary" not in hidden
    assert HIDDEN in hidden


def test_every_secret_of_ours_is_known_by_its_looks():
    for secret in (new_secret() for _ in range(100)):
        hidden = Redaction().hide(f"login with {secret}.")

        assert hidden == f"login with {HIDDEN}."


@pytest.mark.parametrize(
    "text",
    [
        "awake at http://127.0.0.1:8484",
        "a request failed: ValueError",
        "the basic rule: bearers come first",
        "dedup key=abc in agent:main:api:wk_1",
        "Authorization is needed",
        "tokens add: no token 'laptop'",
    ],
)
def test_plain_words_stay(text: str):
    assert Redaction(["another secret"]).hide(text) == text


@given(st.text(min_size=1, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_known_secret_is_left_whatever_surrounds_it(secret: str, before: str, after: str):
    if secret in HIDDEN:
        return

    hidden = Redaction([secret]).hide(f"{before}{secret}{after}")

    assert all(secret not in piece for piece in hidden.split(HIDDEN))


def test_secrets_of_the_environment_are_found_by_their_names():
    environ = {
        "OPENAI_API_KEY": "key-key-key",
        "WAKEFUL_TOKEN": "token-token",
        "GITHUB_HOOK_SECRET": "hook-hook-hook",
        "DATABASE_PASSWORD": "short",
        "HOME": "/home/somebody",
    }

    assert secrets_in(environ) == ["key-key-key", "token-token", "hook-hook-hook"]


def test_the_keys_of_all_providers_are_secrets():
    keys = {key for provider in PROVIDERS.values() for key in provider.keys}
    keys |= {"AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK"}

    shown = {key for key in keys if not secrets_in({key: "canary-canary"})}

    assert {key for key in shown if not key.endswith("_BASE_URL")} == set()
