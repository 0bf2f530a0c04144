"""A server that others can reach has an operator token that nobody guesses."""

import pytest

from wakeful.settings.exposure import is_loopback, refuse_exposed, token_bits
from wakeful.settings.file import ServerSettings
from wakeful.vocabulary.errors import InvalidInput

STRONG = "3f9c1b7a5e2d4860a1b2c3d4e5f60718"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_token_beforehand(host: str):
    assert is_loopback(host)
    refuse_exposed(ServerSettings(host=host), None)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "example.com", "localhost.evil.test"]
)
def test_any_other_address_is_refused_without_a_token(host: str):
    with pytest.raises(InvalidInput, match=r"server\.host: .* set WAKEFUL_TOKEN"):
        refuse_exposed(ServerSettings(host=host), None)

    refuse_exposed(ServerSettings(host=host), STRONG)


@pytest.mark.parametrize(
    "token", ["short", "a" * 100, "ab" * 40, "1234567890" * 3, STRONG[:-1], f"{STRONG} x", "\n" * 9]
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_weak_token_is_refused_everywhere(host: str, token: str):
    with pytest.raises(InvalidInput, match="WAKEFUL_TOKEN: must be a random token of at least 128"):
        refuse_exposed(ServerSettings(host=host), token)


def test_bits_depend_on_the_characters_used():
    assert token_bits(STRONG) == 128
    assert 99 < token_bits("1234567890" * 3) < 100
    assert token_bits("aZ0_" * 8 + "bcdefgh") > 200
