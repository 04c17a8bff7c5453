"""A chat-completions service over real sockets that does what it is told: replies, streams, error
statuses, broken bodies, delays, a cap on calls in flight.

    with FaultServer(lambda request: ok('{"answer": "B"}')) as server:
        ... server.url ...

As a program (`python -m tests.fault_server --latency 0.5 --cap 10`) it prints its port and serves.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """One request as it came; `nth` counts the requests with the same prompt from 1."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    nth: int

    @property
    def prompt(self) -> str:
        return self.body["messages"][-1]["content"]


@dataclass
class Reply:
    """`then`: what follows the bytes, None, "reset" (the connection breaks) or "hang"."""

    status: int = 200
    body: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    then: str | None = None

    def bytes(self) -> bytes:
        payload = self.raw if self.raw is not None else json.dumps(self.body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload))}
        headers |= self.headers
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        return f"HTTP/1.1 {self.status} X\r\n{lines}\r\n".encode() + payload


def ok(
    text: str | None, *, usage: Any = None, finish: str | None = "stop", **message: Any
) -> Reply:
    """A whole reply; `message` adds fields beside the content."""
    usage = usage or {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 110}
    choice = {"index": 0, "finish_reason": finish, "message": {"content": text, **message}}
    return Reply(body={"id": "c", "model": "m-test", "choices": [choice], "usage": usage})


def error(status: int, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
    return Reply(status, {"error": {"message": "told to fail", **fields}}, headers=headers or {})


def stream(events: list[Any], *, done: bool = True, then: str | None = None) -> Reply:
    """Events as a server-sent stream; a str goes out as it is."""
    lines = [e if isinstance(e, str) else f"data: {json.dumps(e)}\n\n" for e in events]
    text = "".join(lines) + ("data: [DONE]\n\n" if done else "")
    headers = {"Content-Type": "text/event-stream"}
    if then == "reset":
        headers["Content-Length"] = "100000"
    return Reply(raw=text.encode(), headers=headers, then=then)


def model_answer(request: Request) -> Reply:
    """What a deterministic model would say: a letter that depends on the prompt alone."""
    letter = "ABCD"[hashlib.sha256(request.prompt.encode()).digest()[0] % 4]
    return ok(json.dumps({"answer": letter, "reason": "r"}))


class FaultServer:
    """Serves in a thread until the `with` block ends. `cap`: more calls in flight get 429."""

    def __init__(
        self,
        respond: Callable[[Request], Reply] = model_answer,
        *,
        cap: int | None = None,
        latency: float = 0.0,
        retry_after: str | None = None,
    ) -> None:
        self.respond = respond
        self.cap = cap
        self.latency = latency
        self.retry_after = retry_after
        self.requests: list[Request] = []
        self.in_flight = self.peak = self.refused = 0
        self._seen: dict[str, int] = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self.serve())

    async def serve(self, port: int = 0, announce: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", port, backlog=1000)
        self.port = server.sockets[0].getsockname()[1]
        if announce:
            print(self.port, flush=True)
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await self._read(reader)) is not None:
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
        raw = await reader.readexactly(int(headers.get("content-length") or 0))
        body = json.loads(raw) if raw else {}
        key = json.dumps(body.get("messages"))
        self._seen[key] = self._seen.get(key, 0) + 1
        request = Request(head[0].split(" ")[1], headers, body, self._seen[key])
        self.requests.append(request)
        return request

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if self.cap is not None and self.in_flight >= self.cap:
            self.refused += 1
            wait = {"Retry-After": self.retry_after} if self.retry_after else {}
            writer.write(error(429, wait, code="rate_limit_exceeded").bytes())
            await writer.drain()
            return True
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            reply = self.respond(request)
            if self.latency or reply.delay:
                await asyncio.sleep(self.latency + reply.delay)
        finally:
            self.in_flight -= 1
        if reply.then == "hang":
            await asyncio.sleep(3600)
        writer.write(reply.bytes())
        await writer.drain()
        if reply.then == "reset":
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await asyncio.sleep(0.02)
            writer.transport.abort()
            return False
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description="a chat-completions service for measurements")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds a call")
    parser.add_argument("--cap", type=int, help="calls in flight, beyond which 429 is sent")
    args = parser.parse_args()
    server = FaultServer(cap=args.cap, latency=args.latency)
    asyncio.run(server.serve(args.port, announce=True))


if __name__ == "__main__":
    main()
