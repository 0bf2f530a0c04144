"""Tokens: made once, shown once, kept as a hash, revoked at once."""

import hashlib
import re
import secrets
from collections.abc import Sequence

import msgspec

from wakeful.access.principal import Principal, checked_scopes
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Trust

CHANGED = "access.changed"  # a credential was made or revoked: its id

PREFIX = "wk_"  # by which a secret of ours is known wherever it turns up: telemetry hides it
SECRET_BYTES = 32
SHORTEST_SECRET = 22  # characters of base64: 128 bits
CODE_SECONDS = 300
LOGIN_SECONDS = 30 * 86_400

LAST_MS = 253_402_300_799_999  # the end of the year 9999, UTC: no calendar goes further

_ID = re.compile(r"tk_", re.IGNORECASE)  # how ids begin
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.@-]{0,63}")


class Token(Record):
    """A credential, without its secret."""

    id: str
    name: str
    hash: str
    scopes: tuple[str, ...]
    owner: str
    trust: Trust
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def principal(self) -> Principal:
        return Principal(
            token_id=self.id,
            name=self.name,
            scopes=self.scopes,
            # Not from the column: old rows name the operator as the owner of a reader's token.
            owner=_owner(self.id, self.scopes),
            trust=self.trust,
            expires_at=self.expires_at,
        )

    def is_valid(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


TOKENS = RowTable("tokens", Token)

# For whoever only looks: by the hash of a secret, by that of a console's cookie, by its id.
OF_SECRET = TOKENS.select("WHERE hash = :hash")
OF_COOKIE = TOKENS.select(
    "WHERE id = (SELECT token_id FROM logins WHERE hash = :hash AND expires_at > :now)"
)
OF_ID = TOKENS.select("WHERE id = :id")


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


class NewToken(Record):
    """What somebody asks for."""

    name: str
    scopes: tuple[str, ...]
    trust: Trust = Trust.EXTERNAL
    expires_at: int | None = None


def add(tx: Tx, ids: Ids, wanted: NewToken, secret: str) -> Token:
    """Make a token; unless it is an operator's, what it makes is its own."""
    if not _NAME.fullmatch(wanted.name):
        raise InvalidInput("name", "must be 1 to 64 letters, digits, spaces, '_', '.', '@', '-'")
    if _ID.match(wanted.name):
        raise InvalidInput("name", "must not begin like an id, which would name two tokens")
    _check_secret(secret)
    if wanted.expires_at is not None and not tx.now < wanted.expires_at <= LAST_MS:
        raise InvalidInput("expires_at", "must be in the future, and before the year 10000")
    scopes = checked_scopes(wanted.scopes)
    token_id = ids.new("tk")
    token = Token(
        id=token_id,
        name=wanted.name,
        hash=digest(secret),
        scopes=scopes,
        owner=_owner(token_id, scopes),
        trust=Trust.OPERATOR if OPERATOR in scopes else wanted.trust,
        created_at=tx.now,
        expires_at=wanted.expires_at,
    )
    if tx.one("SELECT 1 FROM tokens WHERE name = :name", name=wanted.name) is not None:
        raise InvalidInput("name", f"a token named {wanted.name!r} exists already")
    tx.run(TOKENS.insert, **TOKENS.params(token))
    tx.notify(CHANGED, token.id)
    return token


def revoke(tx: Tx, name_or_id: str) -> Token:
    """Revoke a token and every login made with it; what it has open closes at once.

    The last one of an operator stays: nobody could make another.
    """
    row = tx.one(OF_ID, id=name_or_id)
    token = by_name(tx, name_or_id) if row is None else TOKENS.read(row)
    if token is None:
        raise NotFound("token", f"no token {name_or_id!r}")
    if _is_last_operator(tx, token):
        raise InvalidInput("token", "is the last one of an operator: make another one first")
    tx.run(
        "UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL",
        id=token.id,
        now=tx.now,
    )
    _forget_logins(tx, token.id)
    tx.notify(CHANGED, token.id)
    return token


def renew(tx: Tx, name: str, secret: str) -> Token:
    """Give a token a new secret; the old one is worth nothing from then on."""
    _check_secret(secret)
    token = by_name(tx, name)
    if token is None:
        raise NotFound("token", f"no token {name!r}")
    tx.run(
        "UPDATE tokens SET hash = :hash, revoked_at = NULL WHERE id = :id",
        id=token.id,
        hash=digest(secret),
    )
    _forget_logins(tx, token.id)
    tx.notify(CHANGED, token.id)
    return msgspec.structs.replace(token, hash=digest(secret), revoked_at=None)


def by_hash(tx: Tx, secret_hash: str) -> Token | None:
    row = tx.one(OF_SECRET, hash=secret_hash)
    return None if row is None else TOKENS.read(row)


def by_name(tx: Tx, name: str) -> Token | None:
    row = tx.one(TOKENS.select("WHERE name = :name"), name=name)
    return None if row is None else TOKENS.read(row)


def add_code(tx: Tx, token_id: str, code: str) -> None:
    """Keep a single-use code that stands for a token for five minutes."""
    tx.run("DELETE FROM login_codes WHERE expires_at <= :now", now=tx.now)
    tx.run(
        "INSERT INTO login_codes (hash, token_id, expires_at) VALUES (:hash, :id, :expires_at)",
        hash=digest(code),
        id=token_id,
        expires_at=tx.now + CODE_SECONDS * 1000,
    )


def exchange(tx: Tx, code: str, cookie: str) -> bool:
    """Take a code, once, for a cookie; False if it is unknown, used or too old."""
    row = tx.one(
        "DELETE FROM login_codes WHERE hash = :hash AND expires_at > :now RETURNING token_id",
        hash=digest(code),
        now=tx.now,
    )
    if row is None:
        return False
    tx.run("DELETE FROM logins WHERE expires_at <= :now", now=tx.now)
    tx.run(
        "INSERT INTO logins (hash, token_id, expires_at) VALUES (:hash, :id, :expires_at)",
        hash=digest(cookie),
        id=row[0],
        expires_at=tx.now + LOGIN_SECONDS * 1000,
    )
    return True


def every(tx: Tx) -> Sequence[Token]:
    return TOKENS.read_known(tx.all(TOKENS.select("ORDER BY id")))


def _forget_logins(tx: Tx, token_id: str) -> None:
    """Forget who came in with a token, and who still could with a code of it."""
    tx.run("DELETE FROM logins WHERE token_id = :id", id=token_id)
    tx.run("DELETE FROM login_codes WHERE token_id = :id", id=token_id)


def _is_last_operator(tx: Tx, token: Token) -> bool:
    valid = [one.id for one in every(tx) if OPERATOR in one.scopes and one.is_valid(tx.now)]
    return valid == [token.id]


def _owner(token_id: str, scopes: tuple[str, ...]) -> str:
    return OPERATOR if OPERATOR in scopes else token_id


def _check_secret(secret: str) -> None:
    if len(secret) < SHORTEST_SECRET:
        raise InvalidInput("secret", f"must be at least {SHORTEST_SECRET} characters")
