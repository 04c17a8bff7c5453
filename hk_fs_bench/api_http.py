"""One request over the wire: a body goes out, the bytes of a reply come back, or a `Failure`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hk_fs_bench import __version__
from hk_fs_bench.api_errors import Failure, error_of_status, failure_of, failure_of_exception

if TYPE_CHECKING:
    import httpx2  # what the SDK's client is made of

    from hk_fs_bench.api_models import Provider

# An address that does not even take the connection by then is not worth the wait for an answer.
CONNECT_S = 30.0
# Longer than any answer, its reasoning and a stream's packaging: what goes on beyond it never ends.
LONGEST_BODY = 64 * 2**20


class Connection:
    """Requests to one address with one key. Use `async with`, inside one event loop."""

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url = base_url
        self._key = key

    async def __aenter__(self) -> Connection:
        import httpx2
        import openai

        self._url = httpx2.URL(self._base_url.rstrip("/") + "/chat/completions")
        # The SDK's HTTP client, without its resource classes: these add headers of their own
        # (some from variables that were set for another vendor), retries, and half a millisecond.
        self._http = openai.DefaultAioHttpClient(
            follow_redirects=False,
            headers={
                "Authorization": f"Bearer {self._key}",
                "Content-Type": "application/json",
                "User-Agent": f"hk-fs-bench/{__version__}",
            },
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def post(self, body: Mapping[str, Any], timeout: float, provider: Provider) -> bytes:
        """The body of a reply of status 200, unpacked.

        Args:
            timeout: seconds for the whole request.

        Raises:
            Failure: an error status, or no whole reply, by whatever fault.
        """
        import httpx2

        # Made by hand, with an address that was parsed once: the client's own way takes as long as
        # all the rest of a call.
        limits = dict.fromkeys(("read", "write", "pool"), timeout)
        request = httpx2.Request(
            "POST",
            self._url,
            headers=self._http.headers,
            content=json.dumps(body).encode(),
            extensions={"timeout": limits | {"connect": min(timeout, CONNECT_S)}},
        )
        try:
            # The client's time-out is for each read; this one is for the whole request.
            async with asyncio.timeout(timeout):
                response = await self._http.send(request, stream=True)
                try:
                    raw = await _whole(response)
                finally:
                    await response.aclose()
        except Failure:
            raise
        except Exception as error:
            # Whatever a transport makes of a broken service is that call's failure, not the run's.
            raise failure_of_exception(error) from None
        if response.is_success:
            return raw
        text = raw.decode("utf-8", "replace")
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = text
        raise failure_of(response.status_code, error_of_status(said), response.headers, provider)


async def _whole(response: httpx2.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LONGEST_BODY:
            raise Failure("retry", "bad_body", "the service sends a body without end")
        parts.append(part)
    return b"".join(parts)
