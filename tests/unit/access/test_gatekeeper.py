"""What the gatekeeper promises: quick, forgetful of what was revoked, fair to neighbours."""

import asyncio

from wakeful.access import tokens
from wakeful.access.credentials import Credentials
from wakeful.access.gatekeeper import ADDRESSES, FAILURES, Gatekeeper
from wakeful.access.tokens import NewToken
from wakeful.store.database import Store
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.ids import Ids


class Watched:
    """A gatekeeper on a store of its own."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.credentials = Credentials(store, Ids(clock))
        self.gatekeeper = Gatekeeper(store, clock)


async def watched() -> Watched:
    clock = ManualClock()
    return Watched(await open_sqlite(None, clock=clock), clock)


async def test_a_secret_stands_for_its_token_and_nothing_else_does():
    gate = await watched()
    made = await gate.credentials.add(NewToken(name="n", scopes=("send",)), by="t")
    principal = await gate.gatekeeper.by_secret(made.secret)

    assert principal is not None
    assert principal.name == "n"
    for wrong in ("", "x", made.secret + "x", made.token.hash, made.token.id):
        assert await gate.gatekeeper.by_secret(wrong) is None
    await gate.store.close()


async def test_a_cookie_stands_for_the_token_that_logged_in():
    gate = await watched()
    made = await gate.credentials.add(NewToken(name="n", scopes=("operator",)), by="t")
    code = await gate.credentials.login_code(made.token.id)
    cookie = await gate.credentials.exchange(code)
    assert cookie is not None
    principal = await gate.gatekeeper.by_cookie(cookie)

    assert principal is not None
    assert principal.token_id == made.token.id
    assert await gate.gatekeeper.by_secret(cookie) is None
    assert await gate.gatekeeper.by_secret(made.secret) is not None
    assert await gate.gatekeeper.by_cookie(made.secret) is None
    await gate.store.close()


async def test_a_revoked_token_is_unknown_at_once_and_what_it_had_open_closes():
    gate = await watched()
    made = await gate.credentials.add(NewToken(name="n", scopes=("send",)), by="t")
    principal = await gate.gatekeeper.by_secret(made.secret)
    assert principal is not None
    closed: list[str] = []
    gate.gatekeeper.while_valid(principal, lambda: closed.append("first"))
    undo = gate.gatekeeper.while_valid(principal, lambda: closed.append("second"))
    undo()
    await gate.credentials.revoke("n", by="t")

    assert closed == ["first"]
    assert await gate.gatekeeper.by_secret(made.secret) is None
    assert not await gate.gatekeeper.is_valid(made.token.id)
    await gate.store.close()


async def test_a_revocation_that_meets_a_lookup_is_not_forgotten():
    gate = await watched()
    made = await gate.credentials.add(NewToken(name="n", scopes=("send",)), by="t")
    for _ in range(20):
        await asyncio.gather(
            gate.gatekeeper.by_secret(made.secret),
            gate.credentials.revoke("n", by="t"),
        )
        assert await gate.gatekeeper.by_secret(made.secret) is None
        await gate.store.transact(lambda tx: tokens.renew(tx, "n", made.secret))
    await gate.store.close()


async def test_an_expired_token_is_unknown_and_closes_what_it_had_open():
    gate = await watched()
    made = await gate.credentials.add(
        NewToken(name="n", scopes=("send",), expires_at=gate.clock.now() + 1000), by="t"
    )
    principal = await gate.gatekeeper.by_secret(made.secret)
    assert principal is not None
    closed: list[str] = []
    gate.gatekeeper.while_valid(principal, lambda: closed.append("it"))
    gate.clock.advance(1)

    assert closed == ["it"]
    assert await gate.gatekeeper.by_secret(made.secret) is None
    await gate.store.close()


async def test_failures_are_counted_per_address_and_window():
    gate = await watched()
    answers = [gate.gatekeeper.failed("1.2.3.4") for _ in range(FAILURES + 1)]

    assert answers[:-1] == [None] * FAILURES
    assert answers[-1] is not None
    assert gate.gatekeeper.failed("1.2.3.5") is None
    gate.clock.advance(61)
    assert gate.gatekeeper.failed("1.2.3.4") is None
    await gate.store.close()


async def test_counting_failures_takes_bounded_memory():
    gate = await watched()
    for number in range(ADDRESSES + 100):
        gate.gatekeeper.failed(str(number))

    assert len(gate.gatekeeper._failures) == ADDRESSES  # pyright: ignore[reportPrivateUsage]
    await gate.store.close()
