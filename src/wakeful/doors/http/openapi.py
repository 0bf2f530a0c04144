"""The OpenAPI document, made from the table of endpoints."""

import re
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import msgspec
from starlette.responses import Response

from wakeful.doors.http.endpoint import (
    ANYBODY,
    FORM,
    JSON,
    PUBLIC,
    Call,
    Endpoint,
    Nothing,
    Row,
)
from wakeful.doors.http.problems import MEDIA_TYPE as PROBLEM
from wakeful.doors.http.problems import ProblemDocument

OUR_VERSION = metadata.version("wakeful")  # looked up once: it is searched for on the whole path
OPENAPI_VERSION = "3.1.0"

_REFS = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")


class OpenApi:
    """Describes the other endpoints, and itself."""

    def __init__(self, others: Sequence[Row]) -> None:
        self._others = others
        self._document: bytes | None = None

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/openapi.json",
                scope=ANYBODY,
                summary="This document",
                answer=self.document,
                returns={200: dict[str, Any]},
            )
        ]

    async def document(self, call: Call[Nothing, Nothing]) -> Response:
        if self._document is None:
            self._document = msgspec.json.encode(describe([*self._others, *self.endpoints()]))
        return Response(self._document, media_type="application/json")


def describe(table: Sequence[Row]) -> dict[str, Any]:
    """Return the OpenAPI document of a table; of a row that is no endpoint, only where it is."""
    endpoints = [row for row in table if isinstance(row, Endpoint)]
    types: list[Any] = [ProblemDocument]
    for endpoint in endpoints:
        types += [endpoint.query, *endpoint.returns.values()]
        types += [endpoint.body] if endpoint.takes_body else []
    kinds = [kind for kind in types if not isinstance(kind, str)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFS)
    by_type = dict(zip(map(id, kinds), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, by_type, components)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    for row in table:
        if not isinstance(row, Endpoint):
            described = {"summary": row.summary, "x-method": row.method, "x-scope": row.scope}
            paths.setdefault(row.path, {}).update(described)
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": OPENAPI_VERSION,
        "info": {"title": "wakeful", "version": OUR_VERSION},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
    }


def _operation(
    endpoint: Endpoint, schemas: dict[int, Any], components: dict[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _name(endpoint.method, endpoint.path),
        "summary": endpoint.summary,
        "security": [] if endpoint.is_open else [{"token": []}],
        "responses": {
            **{
                str(status): _response(kind, schemas, endpoint)
                for status, kind in endpoint.returns.items()
            },
            "default": {
                "description": "A problem (RFC 9457)",
                "content": {PROBLEM: {"schema": schemas[id(ProblemDocument)]}},
            },
        },
    }
    if endpoint.scope != PUBLIC:
        operation["x-scope"] = endpoint.scope
    parameters = _parameters(endpoint, schemas, components)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.streamed:
        content = {endpoint.streamed: {"schema": {"type": "string"}}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.body is bytes:
        raw = {"schema": {"type": "string", "format": "binary"}}
        content = dict.fromkeys(endpoint.media_types, raw)
        operation["requestBody"] = {"required": True, "content": content}
    elif endpoint.takes_body:
        content = {JSON: {"schema": schemas[id(endpoint.body)]}}
        if endpoint.read_form:
            content[FORM] = {"schema": {"type": "object"}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _name(method: str, path: str) -> str:
    """Return the name of an operation, by which links call it."""
    return "_".join([method.lower(), *(word for word in re.split(r"\W+", path) if word)])


def _response(kind: Any, schemas: dict[int, Any], endpoint: Endpoint) -> dict[str, Any]:
    if kind == "":
        return {"description": "Done"}
    if isinstance(kind, str):
        return {"description": "As it is", "content": {kind: {"schema": {"type": "string"}}}}
    response: dict[str, Any] = {
        "description": "Done",
        "content": {"application/json": {"schema": schemas[id(kind)]}},
    }
    if endpoint.links:
        response["links"] = {
            _name(link.method, link.path): {
                "operationId": _name(link.method, link.path),
                "parameters": {link.parameter: f"$response.body#{link.pointer}"},
            }
            for link in endpoint.links
        }
    return response


def _parameters(
    endpoint: Endpoint, schemas: dict[int, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(endpoint.path)
    ]
    reference: str = schemas[id(endpoint.query)]["$ref"]
    query = components[reference.rpartition("/")[2]]
    found += [
        {
            "name": name,
            "in": "query",
            "required": name in query.get("required", ()),
            "schema": _without_null(schema),
        }
        for name, schema in query.get("properties", {}).items()
    ]
    found += [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": why,
            "schema": {"type": "string", "minLength": 1, "maxLength": 256},
        }
        for name, why in endpoint.headers.items()
    ]
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter: one that is missing is not null."""
    options = [option for option in schema.get("anyOf", []) if option != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    if rest.get("default", 0) is None:
        del rest["default"]
    if len(options) == 1:
        return {**rest, **options[0]}
    return {**rest, "anyOf": options} if options else rest
