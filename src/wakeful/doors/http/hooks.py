"""Webhooks: what others send, which hooks there are, and an example for each."""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from wakeful.access import audit
from wakeful.doors import hooks
from wakeful.doors.hooks import NotProved
from wakeful.doors.http.addresses import canonical_address
from wakeful.doors.http.endpoint import ANY_TYPE, SIGNED, Call, Endpoint, Given, Nothing
from wakeful.doors.http.guard import refused
from wakeful.doors.http.inside import Inside
from wakeful.doors.http.paging import Page
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.shapes import ReceiptShape, shaped
from wakeful.intake.dedup import KeyReused
from wakeful.services import Services
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR
from wakeful.webhooks.payload import UnreadableBody
from wakeful.webhooks.verification import Scheme

NOT_PROVED = "no hook of this name has such a secret, or the signature is wrong or too old"
AT_ONCE = 128  # deliveries whose body is read or filed; each may be a mebibyte
AT_ONCE_EACH = 64  # of one address: who sends slowly keeps nobody else out


class HookShape(Record):
    """A hook, and what came to it: refusals since the server began, the rest by the ledger."""

    name: str
    verify: Scheme
    agent: str
    session: str | None
    priority: str
    tools: tuple[str, ...]
    accepted: int
    refused: int
    last_at: datetime | None
    last_refused_at: datetime | None
    last_refusal: str | None


class ExampleBody(Given):
    """What the example carries: text is sent as text, anything else as JSON; null: our own."""

    payload: Any = None


class HookEndpoints:
    """What senders of webhooks reach, and what the operator sees of them."""

    def __init__(self, services: Services, inside: Inside) -> None:
        self._services = services
        self._inside = inside
        self._arriving = ArrivingHooks()

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/hooks/{name}",
                scope=SIGNED,
                summary="Take a webhook whose sender proves to have the hook's secret",
                answer=self.take,
                body=bytes,
                media_types=(ANY_TYPE,),
                returns={202: ReceiptShape, 200: ReceiptShape},
                admit=self._arriving.admit,
            ),
            Endpoint(
                method="GET",
                path="/api/hooks",
                scope="read",
                summary="List the hooks, and what came to them",
                answer=self.page,
                returns={200: Page[HookShape]},
            ),
            Endpoint(
                method="POST",
                path="/api/hooks/{name}/test",
                scope=OPERATOR,
                summary="Send a hook a signed example by its own route, and show the receipt",
                answer=self.send_example,
                body=ExampleBody,
                returns={202: ReceiptShape, 200: ReceiptShape},
            ),
        ]

    async def take(self, call: Call[Nothing, bytes]) -> tuple[int, ReceiptShape]:
        request = call.request
        headers = hooks.headers_of(request.scope["headers"])
        try:
            taken = await hooks.receive(self._services, call.path["name"], headers, call.body)
        except NotProved:
            raise refused(self._services.gatekeeper, request.scope, NOT_PROVED) from None
        except UnreadableBody as error:
            raise Problem("bad-request", str(error)) from None
        except KeyReused:
            detail = "this delivery came before with another body"
            raise Problem("conflict", detail) from None
        return 200 if taken.is_repeated else 202, shaped(ReceiptShape, taken.receipt)

    async def page(self, call: Call[Nothing, Nothing]) -> Page[HookShape]:
        found = await hooks.statuses(self._services)
        return Page(items=[shaped(HookShape, one) for one in found], next=None)

    async def send_example(self, call: Call[Nothing, ExampleBody]) -> Response:
        services, name, who = self._services, call.path["name"], call.principal.name
        made = hooks.example_for(services, name, call.body.payload)
        await services.views.store.transact(
            lambda tx: audit.note(tx, services.ids, who=who, action="hook.test", target=name)
        )
        return await self._inside.post(f"/hooks/{name}", made.headers, made.body)


class ArrivingHooks:
    """How many deliveries are under way, and from where."""

    def __init__(self) -> None:
        self._each: Counter[str] = Counter()

    def admit(self, scope: Scope, path: Mapping[str, str]) -> AbstractContextManager[object]:
        client = scope.get("client")
        return self._counted(canonical_address(client[0] if client else "unknown"))

    @contextmanager
    def _counted(self, address: str) -> Generator[None, None, None]:
        if self._each[address] >= AT_ONCE_EACH or self._each.total() >= AT_ONCE:
            raise Problem("too-many-requests", "too many webhooks at once", retry_after_s=1)
        self._each[address] += 1
        try:
            yield
        finally:
            self._each[address] -= 1
            if not self._each[address]:
                del self._each[address]
