"""What tokens promise: shown once, kept as a hash, worth nothing once revoked."""

from pathlib import Path

import pytest

from wakeful.access import tokens
from wakeful.access.credentials import Credentials
from wakeful.access.principal import Principal, checked_scopes
from wakeful.access.tokens import NewToken
from wakeful.store.database import Store
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import InvalidInput, NotFound, Permanent
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Trust


async def opened() -> tuple[Store, Credentials, ManualClock]:
    clock = ManualClock()
    store = await open_sqlite(None, clock=clock)
    return store, Credentials(store, Ids(clock)), clock


def principal(*scopes: str, owner: str = "tk_1") -> Principal:
    return Principal(token_id="tk_1", name="n", scopes=scopes, owner=owner, trust=Trust.EXTERNAL)


async def test_only_the_hash_of_a_secret_is_kept():
    store, credentials, _ = await opened()
    made = await credentials.add(NewToken(name="n", scopes=("send",)), by="t")
    rows = await store.read("SELECT * FROM tokens")

    assert made.secret not in str([tuple(row) for row in rows])
    assert tokens.digest(made.secret) in str([tuple(row) for row in rows])
    await store.close()


@pytest.mark.parametrize(
    ("scopes", "owner", "trust"),
    [
        (("operator",), "operator", Trust.OPERATOR),
        (("read",), None, Trust.EXTERNAL),
        (("send",), None, Trust.EXTERNAL),
        (("inbox:github",), None, Trust.EXTERNAL),
        (("send", "read"), None, Trust.EXTERNAL),
    ],
)
async def test_a_token_owns_what_it_makes_unless_it_is_the_operators(
    scopes: tuple[str, ...], owner: str | None, trust: Trust
):
    store, credentials, _ = await opened()
    token = (await credentials.add(NewToken(name="n", scopes=scopes), by="t")).token

    assert token.principal().owner == (owner or token.id)
    assert token.trust is trust
    await store.close()


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (NewToken(name="", scopes=("send",)), "name"),
        (NewToken(name="a\nb", scopes=("send",)), "name"),
        (NewToken(name="n", scopes=()), "scopes"),
        (NewToken(name="n", scopes=("root",)), "scopes"),
        (NewToken(name="n", scopes=("inbox:",)), "scopes"),
        (NewToken(name="n", scopes=("send",), expires_at=1), "expires_at"),
        (NewToken(name="n", scopes=("send",), expires_at=tokens.LAST_MS + 1), "expires_at"),
        (NewToken(name="tk_0192", scopes=("send",)), "name"),
        (NewToken(name="TK_0192", scopes=("send",)), "name"),
    ],
)
async def test_a_bad_token_is_refused_by_field(wanted: NewToken, field: str):
    store, credentials, _ = await opened()
    with pytest.raises(InvalidInput) as caught:
        await credentials.add(wanted, by="t")

    assert caught.value.field == field
    assert await credentials.every() == []
    await store.close()


async def test_a_short_secret_is_refused():
    store, _, clock = await opened()
    with pytest.raises(InvalidInput, match="secret"):
        await store.transact(
            lambda tx: tokens.add(tx, Ids(clock), NewToken(name="n", scopes=("send",)), "x" * 21)
        )
    await store.close()


async def test_a_login_code_is_worth_one_cookie_and_five_minutes():
    store, credentials, clock = await opened()
    made = await credentials.add(NewToken(name="n", scopes=("operator",)), by="t")
    used, late = [await credentials.login_code(made.token.id) for _ in range(2)]

    assert await credentials.exchange(used) is not None
    assert await credentials.exchange(used) is None
    clock.advance(tokens.CODE_SECONDS)
    assert await credentials.exchange(late) is None
    assert await credentials.exchange("unknown") is None
    await store.close()


async def test_the_last_token_of_an_operator_is_not_revoked():
    store, credentials, clock = await opened()
    soon = clock.now() + 1000
    await credentials.add(NewToken(name="n", scopes=("operator",)), by="t")
    await credentials.add(NewToken(name="brief", scopes=("operator",), expires_at=soon), by="t")
    await credentials.add(NewToken(name="reader", scopes=("read",)), by="t")
    clock.advance(1)
    with pytest.raises(InvalidInput, match="last one of an operator"):
        await credentials.revoke("n", by="t")
    await credentials.revoke("reader", by="t")
    await credentials.add(NewToken(name="another", scopes=("operator",)), by="t")

    assert (await credentials.revoke("n", by="t")).name == "n"
    await store.close()


async def test_an_id_names_its_own_token_and_no_other():
    store, credentials, _ = await opened()
    old = (await credentials.add(NewToken(name="old", scopes=("send",)), by="t")).token
    await credentials.add(NewToken(name="liar", scopes=("send",)), by="t")
    await store.transact(
        lambda tx: tx.run("UPDATE tokens SET name = :id WHERE name = 'liar'", id=old.id)
    )

    assert (await credentials.revoke(old.id, by="t")).name == "old"
    await store.close()


async def test_whoever_starts_the_runtime_is_let_in_whatever_was_revoked(tmp_path: Path):
    store, credentials, clock = await opened()
    first = await credentials.operator(tmp_path)
    await credentials.add(NewToken(name="another", scopes=("operator",)), by="t")
    await credentials.revoke("operator", by="t")

    again = await credentials.operator(tmp_path)

    assert again.secret != first.secret
    assert again.token.is_valid(clock.now())
    assert (await credentials.operator(tmp_path)).secret == again.secret
    with pytest.raises(Permanent, match="WAKEFUL_TOKEN"):
        await _revoked(credentials, tmp_path)
    await store.close()


async def _revoked(credentials: Credentials, home: Path) -> None:
    """Start with a secret that was chosen, and has been revoked."""
    made = await credentials.add(NewToken(name="chosen", scopes=("operator",)), by="t")
    await credentials.revoke("chosen", by="t")
    await credentials.operator(home, made.secret)


async def test_revoking_takes_the_logins_along():
    store, credentials, _ = await opened()
    await credentials.add(NewToken(name="another", scopes=("operator",)), by="t")
    made = await credentials.add(NewToken(name="n", scopes=("operator",)), by="t")
    await credentials.exchange(await credentials.login_code(made.token.id))
    await credentials.login_code(made.token.id)
    await credentials.revoke("n", by="t")

    assert await store.read("SELECT 1 FROM logins UNION ALL SELECT 1 FROM login_codes") == []
    with pytest.raises(NotFound):
        await credentials.revoke("nobody", by="t")
    await store.close()


def test_the_operator_has_every_scope_and_others_their_own():
    assert principal("operator").may("send")
    assert principal("send").may("send")
    assert not principal("read").may("send")
    assert not principal("send").may("operator")


def test_scopes_are_kept_once_and_in_order():
    assert checked_scopes(("send", "read", "send")) == ("read", "send")


async def test_a_new_secret_makes_the_codes_of_the_old_one_worthless():
    store, credentials, _ = await opened()
    made = await credentials.add(NewToken(name="n", scopes=("operator",)), by="t")
    code = await credentials.login_code(made.token.id)
    await store.transact(lambda tx: tokens.renew(tx, "n", tokens.new_secret()))

    assert await credentials.exchange(code) is None
    await store.close()


async def test_a_login_that_has_expired_is_forgotten_at_the_next_one():
    store, credentials, clock = await opened()
    made = await credentials.add(NewToken(name="n", scopes=("operator",)), by="t")
    await credentials.exchange(await credentials.login_code(made.token.id))
    clock.advance(tokens.LOGIN_SECONDS + 1)
    await credentials.exchange(await credentials.login_code(made.token.id))

    assert len(await store.read("SELECT hash FROM logins")) == 1
    await store.close()
