"""Credentials: make, show and revoke tokens, and let a console log in."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from wakeful.access import audit, tokens
from wakeful.access.tokens import NewToken, Token
from wakeful.store.database import Store, Tx
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR

FILE_NAME = "operator.token"
RUNTIME = "runtime"  # who made the first token, and the code that a start shows


class Made(Record):
    """A new token and its secret, which is shown this once."""

    token: Token
    secret: str


class Credentials:
    """The tokens of one runtime; each change is audited in its own commit."""

    def __init__(self, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids

    async def add(self, wanted: NewToken, *, by: str) -> Made:
        """Make a token; its secret is known to the caller alone."""
        secret = tokens.new_secret()
        return Made(
            token=await self._store.transact(self._adding(wanted, secret, by)), secret=secret
        )

    async def revoke(self, name: str, *, by: str) -> Token:
        """Revoke a token by its name or id; whatever it has open closes."""

        def write(tx: Tx) -> Token:
            audit.note(tx, self._ids, who=by, action="tokens.revoke", target=name[:256])
            return tokens.revoke(tx, name)

        return await self._store.transact(write)

    async def every(self) -> Sequence[Token]:
        return await self._store.transact(tokens.every)

    async def has_valid(self) -> bool:
        """Tell whether there is a token that somebody could use."""
        return await self._store.transact(
            lambda tx: any(token.is_valid(tx.now) for token in tokens.every(tx))
        )

    async def login_code(self, token_id: str, *, by: str = RUNTIME) -> str:
        """Return a single-use code that a console may exchange for a cookie within minutes."""
        code = tokens.new_secret()

        def write(tx: Tx) -> None:
            audit.note(tx, self._ids, who=by, action="login.code", target=token_id)
            tokens.add_code(tx, token_id, code)

        await self._store.transact(write)
        return code

    async def exchange(self, code: str) -> str | None:
        """Take a code for a cookie; None if it is unknown, used or too old."""
        cookie = tokens.new_secret()
        is_taken = await self._store.transact(lambda tx: tokens.exchange(tx, code, cookie))
        return cookie if is_taken else None

    async def operator(self, home: Path, chosen: str | None = None) -> Made:
        """Return the operator's token, made on the first start and kept in a private file.

        A file without its token (a new database) gets one; a token without its file a new secret,
        and so does a file whose token is worth nothing any more: whoever starts the runtime is let
        in. A secret that the operator chose (WAKEFUL_TOKEN) counts instead, and is kept nowhere.
        """
        file = home / FILE_NAME
        kept = chosen or _read_secret(file)
        is_valid = kept is not None and await self._is_usable(kept)
        if chosen is not None and not is_valid:
            raise Permanent("the token that was chosen (WAKEFUL_TOKEN) is revoked: choose another")
        secret = kept if kept is not None and is_valid else tokens.new_secret()

        def write(tx: Tx) -> Token:
            known = tokens.by_hash(tx, tokens.digest(secret))
            if known is not None:
                return known
            if tokens.by_name(tx, OPERATOR) is not None:
                audit.note(tx, self._ids, who=RUNTIME, action="tokens.renew", target=OPERATOR)
                return tokens.renew(tx, OPERATOR, secret)
            wanted = NewToken(name=OPERATOR, scopes=(OPERATOR,))
            return self._adding(wanted, secret, RUNTIME)(tx)

        token = await self._store.transact(write)
        if not is_valid:
            _write_secret(file, secret)
        return Made(token=token, secret=secret)

    async def _is_usable(self, secret: str) -> bool:
        """Tell whether a secret is one that the ledger does not know yet, or still takes."""

        def look(tx: Tx) -> bool:
            known = tokens.by_hash(tx, tokens.digest(secret))
            return known is None or known.is_valid(tx.now)

        return await self._store.transact(look)

    def _adding(self, wanted: NewToken, secret: str, by: str) -> Callable[[Tx], Token]:
        def write(tx: Tx) -> Token:
            audit.note(tx, self._ids, who=by, action="tokens.add", target=wanted.name[:256])
            return tokens.add(tx, self._ids, wanted, secret)

        return write


def _read_secret(file: Path) -> str | None:
    try:
        secret = file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Permanent(f"{file} cannot be read: {error}") from error
    if len(secret) < tokens.SHORTEST_SECRET:
        raise Permanent(
            f"{file} holds no token of at least {tokens.SHORTEST_SECRET} characters: delete it, "
            "and the next start makes a new one"
        )
    return secret


def _write_secret(file: Path, secret: str) -> None:
    """Put the file in place whole and private, whatever the umask is."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, f"{secret}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.rename(file)
