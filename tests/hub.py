"""A small server that speaks the Hub's protocol for dataset repositories, over real sockets.

Commits are whole trees. Reading: revision info, tree listing, paths info, refs, resolve with the
headers that huggingface_hub checks. Writing, with the token alone: create, validate-yaml, preupload
(every file a regular one), commit as ndjson, tag, settings.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

TOKEN = "hf_test"


def blob_oid(raw: bytes) -> str:
    """The name that git gives a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()


class Hub:
    """Repositories by name: commits (sha → path → bytes) and refs (branch or tag → sha)."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, dict[str, bytes]]] = {}
        self.refs: dict[str, dict[str, str]] = {}
        self.settings: dict[str, dict[str, object]] = {}
        self.tags: dict[str, set[str]] = {}
        self.log: list[str] = []

    def commit(self, repo: str, files: dict[str, bytes], *, tag: str | None = None) -> str:
        listing = sorted((p, hashlib.sha256(raw).hexdigest()) for p, raw in files.items())
        parent = self.refs.get(repo, {}).get("main")
        sha = hashlib.sha1(repr((parent, listing)).encode()).hexdigest()
        self.commits.setdefault(repo, {})[sha] = dict(files)
        refs = self.refs.setdefault(repo, {})
        refs["main"] = sha
        if tag:
            self.tag(repo, tag, sha)
        return sha

    def tag(self, repo: str, name: str, sha: str) -> None:
        self.refs[repo][name] = sha
        self.tags.setdefault(repo, set()).add(name)

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        """The tree of a revision."""
        return self.commits[repo][self.resolve(repo, revision) or ""]

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

        def do_POST(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            hub.log.append(f"{self.command} {path}")
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = path.split("/")
            repo, rest = "/".join(parts[2:4]), parts[4:]
            if path == "api/validate-yaml":
                self.validate(json.loads(raw)["content"])
            elif rest[:1] == ["paths-info"]:
                self.paths_info(repo, rest[1], raw)
            elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.reply({"error": "Invalid user token."}, 401)
            elif path == "api/repos/create":
                self.create(json.loads(raw))
            elif repo not in hub.commits:
                self.fail("RepoNotFound")
            elif rest[0] == "preupload":
                self.preupload(repo, json.loads(raw)["files"])
            elif rest[0] == "commit":
                self.commit(repo, [json.loads(line) for line in raw.splitlines()])
            elif rest[0] == "tag":
                self.tag(repo, rest[1], json.loads(raw)["tag"])
            elif rest[0] == "settings":
                hub.settings.setdefault(repo, {}).update(json.loads(raw))
                self.reply({})
            else:
                self.fail("EntryNotFound")

        do_PUT = do_POST

        def reply(self, value: object, status: int = 200) -> None:
            self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def validate(self, content: str) -> None:
            try:
                yaml.safe_load(content.split("---\n")[1])
            except (yaml.YAMLError, IndexError) as error:
                self.reply({"errors": [{"message": str(error)}], "warnings": []}, 400)
            else:
                self.reply({"errors": [], "warnings": []})

        def create(self, wanted: dict[str, str]) -> None:
            repo = f"{wanted['organization']}/{wanted['name']}"
            found = {"url": f"http://{self.headers['Host']}/datasets/{repo}", "id": repo}
            if repo in hub.commits:
                self.reply(found | {"error": "You already created this dataset repo"}, 409)
                return
            hub.commit(repo, {".gitattributes": b"*.bin filter=lfs\n"})
            self.reply(found)

        def preupload(self, repo: str, wanted: list[dict[str, str]]) -> None:
            there = hub.files(repo)
            files = [
                {
                    "path": file["path"],
                    "uploadMode": "regular",
                    "shouldIgnore": False,
                    "oid": blob_oid(there[file["path"]]) if file["path"] in there else None,
                }
                for file in wanted
            ]
            self.reply({"files": files})

        def commit(self, repo: str, operations: list[dict[str, dict[str, str]]]) -> None:
            files = dict(hub.files(repo))
            for operation in operations[1:]:
                value = operation["value"]
                if operation["key"] == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif operation["key"] == "deletedFile":
                    del files[value["path"]]
                else:
                    self.reply({"error": f"unknown operation {operation['key']}"}, 400)
                    return
            sha = hub.commit(repo, files)
            url = f"http://{self.headers['Host']}/datasets/{repo}/commit/{sha}"
            self.reply({"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})

        def tag(self, repo: str, revision: str, name: str) -> None:
            sha = hub.resolve(repo, revision)
            if sha is None:
                self.fail("RevisionNotFound")
            elif name in hub.tags.get(repo, ()):
                self.reply({"error": f"Tag reference exists already: {name}"}, 409)
            else:
                hub.tag(repo, name, sha)
                self.reply({})

        def paths_info(self, repo: str, revision: str, raw: bytes) -> None:
            wanted = parse_qs(raw.decode()).get("paths") or json.loads(raw)["paths"]
            there = hub.files(repo, revision)
            self.reply([self.entry(p, there[p]) for p in wanted if p in there])

        @staticmethod
        def entry(path: str, raw: bytes) -> dict[str, object]:
            return {"type": "file", "path": path, "size": len(raw), "oid": blob_oid(raw)}

        def api(self, repo: str, rest: list[str]) -> None:
            if repo not in hub.commits:
                self.fail("RepoNotFound")
                return
            if rest == ["refs"]:
                self.refs(repo)
                return
            sha = hub.resolve(repo, rest[1] if len(rest) > 1 else "main")
            if sha is None:
                self.fail("RevisionNotFound")
                return
            files = hub.commits[repo][sha]
            if rest and rest[0] == "tree":
                under = "/".join(rest[2:])
                listing: object = [
                    self.entry(p, raw)
                    for p, raw in files.items()
                    if not under or p.startswith(f"{under}/")
                ]
            else:
                siblings = [{"rfilename": p} for p in files]
                listing = {"id": repo, "sha": sha, "siblings": siblings, "private": False}
            self.reply(listing)

        def refs(self, repo: str) -> None:
            tags = hub.tags.get(repo, set())
            found: dict[str, list[dict[str, str]]] = {"branches": [], "converts": [], "tags": []}
            for name, sha in hub.refs[repo].items():
                kind, place = ("tags", "tags") if name in tags else ("branches", "heads")
                ref = {"name": name, "ref": f"refs/{place}/{name}", "targetCommit": sha}
                found[kind].append(ref)
            self.reply(found)

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
