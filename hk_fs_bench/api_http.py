"""One request over the wire: a body goes out, the bytes of a reply come back, or a `Failure`."""

from __future__ import annotations

import json
import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hk_fs_bench import __version__
from hk_fs_bench.api_errors import Failure, error_of_status, failure_of, failure_of_exception

if TYPE_CHECKING:
    import aiohttp

    from hk_fs_bench.api_models import Provider

# An address that does not even take the connection by then is not worth the wait for an answer.
CONNECT_S = 30.0
# Longer than any answer, its reasoning and a stream's packaging: what goes on beyond it never ends.
LONGEST_BODY = 64 * 2**20


class Connection:
    """Requests to one address with one key. Use `async with`, inside one event loop.

    This is aiohttp, the transport that `openai[aiohttp]` brings, without the SDK above it: the SDK
    adds headers of its own (some from variables that were set for another vendor), retries, and
    more work to a call than all the rest of it.
    """

    def __init__(self, base_url: str, key: str) -> None:
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._key = key

    async def __aenter__(self) -> Connection:
        import aiohttp
        import certifi

        # Not aiohttp's `trust_env`: that would also put a password of ~/.netrc in the key's place.
        self._proxy = _proxy_of(self._url)
        trusted = ssl.create_default_context(
            cafile=os.environ.get("SSL_CERT_FILE", certifi.where())
        )
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trusted),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Authorization": f"Bearer {self._key}",
                "Content-Type": "application/json",
                "User-Agent": f"hk-fs-bench/{__version__}",
            },
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def post(self, body: Mapping[str, Any], timeout: float, provider: Provider) -> bytes:
        """The body of a reply of status 200, unpacked.

        Args:
            timeout: seconds for the whole request.

        Raises:
            Failure: an error status, or no whole reply, by whatever fault.
        """
        import aiohttp

        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, CONNECT_S))
        try:
            async with self._http.post(
                self._url,
                data=json.dumps(body).encode(),
                allow_redirects=False,
                timeout=limits,
                proxy=self._proxy,
            ) as response:
                raw = await _whole(response)
        except Failure:
            raise
        except Exception as error:
            # Whatever a transport makes of a broken service is that call's failure, not the run's.
            raise failure_of_exception(error) from None
        if 200 <= response.status < 300:
            return raw
        text = raw.decode("utf-8", "replace")
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = text
        raise failure_of(response.status, error_of_status(said), response.headers, provider)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > LONGEST_BODY:
            raise Failure("retry", "bad_body", "the service sends a body without end")
        parts.append(part)
    return b"".join(parts)


def _proxy_of(url: str) -> str | None:
    """The proxy that the environment sets for an address."""
    parts = urllib.parse.urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
