"""Headers of every answer."""

# Nothing of ours is ever shown inside another site's page, nor loads anything from one.
CSP = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
ALWAYS = [
    ("content-security-policy", CSP),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
]

NO_STORE = (b"cache-control", b"no-store")


def add_defaults(headers: list[tuple[bytes, bytes]]) -> None:
    """Add what holds for an answer that does not say otherwise: nobody keeps it."""
    for name, _ in headers:
        if name == b"cache-control":
            return
    headers.append(NO_STORE)
