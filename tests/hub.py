"""A small server that speaks the Hub's protocol for dataset repositories, over real sockets.

Commits are whole trees. Reading: revision info, tree listing, resolve with the headers that
huggingface_hub checks.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Hub:
    """Repositories by name: commits (sha → path → bytes) and refs (branch or tag → sha)."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, dict[str, bytes]]] = {}
        self.refs: dict[str, dict[str, str]] = {}
        self.log: list[str] = []

    def commit(self, repo: str, files: dict[str, bytes], *, tag: str | None = None) -> str:
        listing = sorted((p, hashlib.sha256(raw).hexdigest()) for p, raw in files.items())
        sha = hashlib.sha1(repr(listing).encode()).hexdigest()
        self.commits.setdefault(repo, {})[sha] = dict(files)
        refs = self.refs.setdefault(repo, {})
        refs["main"] = sha
        if tag:
            refs[tag] = sha
        return sha

    def resolve(self, repo: str, revision: str) -> str | None:
        refs = self.refs.get(repo, {})
        return refs.get(revision) or (revision if revision in self.commits.get(repo, {}) else None)


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def fail(self, code: str) -> None:
            body = json.dumps({"error": code}).encode()
            self.answer(404, body, {"X-Error-Code": code, "X-Error-Message": code})

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            hub.log.append(f"{self.command} {path}")
            parts = path.split("/")
            if parts[:2] == ["api", "datasets"] and len(parts) >= 4:
                self.api("/".join(parts[2:4]), parts[4:])
            elif parts[0] == "datasets" and "resolve" in parts:
                self.file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]))
            else:
                self.fail("RepoNotFound")

        do_HEAD = do_GET

        def api(self, repo: str, rest: list[str]) -> None:
            if repo not in hub.commits:
                self.fail("RepoNotFound")
                return
            sha = hub.resolve(repo, rest[1] if len(rest) > 1 else "main")
            if sha is None:
                self.fail("RevisionNotFound")
                return
            files = hub.commits[repo][sha]
            if rest and rest[0] == "tree":
                listing: object = [
                    {
                        "type": "file",
                        "path": p,
                        "size": len(raw),
                        "oid": hashlib.sha1(raw).hexdigest(),
                    }
                    for p, raw in files.items()
                ]
            else:
                siblings = [{"rfilename": p} for p in files]
                listing = {"id": repo, "sha": sha, "siblings": siblings, "private": False}
            self.answer(200, json.dumps(listing).encode(), {"Content-Type": "application/json"})

        def file(self, repo: str, revision: str, path: str) -> None:
            sha = hub.resolve(repo, revision)
            if repo not in hub.commits:
                self.fail("RepoNotFound")
            elif sha is None:
                self.fail("RevisionNotFound")
            elif path not in hub.commits[repo][sha]:
                self.fail("EntryNotFound")
            else:
                raw = hub.commits[repo][sha][path]
                etag = hashlib.sha1(raw).hexdigest()
                self.answer(200, raw, {"ETag": f'"{etag}"', "X-Repo-Commit": sha})

    return Handler


@contextmanager
def serve(hub: Hub) -> Iterator[str]:
    """Run the server; yields its address, for HF_ENDPOINT."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
