"""A judge model asked through the API runner's client: every verdict paid for once.

Verdicts lie in the judged run's folder, judges/<judge>/predictions.jsonl, in the form of a run, so
that the same command again asks only what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hk_fs_bench import api_keys, api_manifest, api_models, providers, runs
from hk_fs_bench.api_budget import Budget, Stopped
from hk_fs_bench.api_pace import Pace
from hk_fs_bench.client import Account, Session
from hk_fs_bench.errors import UserError
from hk_fs_bench.metrics.keypoints import settings
from hk_fs_bench.prompts import prompt_sha256


@dataclass(frozen=True)
class Query:
    """A prompt for the judge, about the row `key` of the run in `folder`."""

    folder: Path
    key: runs.Key
    prompt: str


class Judge(Protocol):
    """Whoever answers queries: a hosted model, or a script in a test."""

    @property
    def signature(self) -> str:
        """Who judges, for the signature of the figures."""

    def ask(self, queries: Sequence[Query]) -> list[str | None]:
        """The reply to each query, None where none was got."""


class ApiJudge:
    """An entry of models.yaml as judge, asked at temperature 0 where its API takes one.

    Args:
        service_id, base_url: for an entry that leaves them open, as a server of one's own.
        max_cost: USD for all that is asked.
        prompt: `version` and `max_tokens` of what is asked; the key points' without it.

    Raises:
        UserError: no such entry, something open that was not given, a missing key, a price that
            `max_cost` needs.
    """

    def __init__(
        self,
        name: str,
        *,
        service_id: str | None = None,
        base_url: str | None = None,
        max_cost: float | None = None,
        models_file: Path | None = None,
        prompt: Mapping[str, Any] | None = None,
    ) -> None:
        self._prompt = settings() if prompt is None else prompt
        registry = api_models.load(models_file)
        entry = registry.model(name)
        self.provider = registry.provider(entry)
        sent, url = entry.id or service_id, self.provider.base_url
        if base_url is not None and (url is None or self.provider.deployment == "local"):
            url = base_url
        if not sent or not url:
            lacking = "--judge-id" if not sent else "--judge-url"
            raise UserError(f"{name} can be any model at any address: name it with {lacking}")
        if max_cost is not None and not 0 <= max_cost < math.inf:
            raise UserError(f"--max-cost {max_cost} is no amount of USD")
        if max_cost is not None and entry.price is None:
            raise UserError(f"--max-cost needs a price, and models.yaml has none for {name}")
        self.model = entry.model_copy(update={"id": sent})
        self.name = entry.model or api_manifest.shown_id(sent)
        self._url, self._budget = url, Budget(max_cost)
        slug = f"{self.name}-{self.model.thinking.mode}"
        self._slug = re.sub(r"[^\w.-]+", "-", slug)[-100:].strip("-.")
        self.asked = self.failed = 0

    @property
    def signature(self) -> str:
        return f"{self.name} ({self.model.thinking.mode})"

    @property
    def summary(self) -> str:
        """What was asked now, in a line."""
        cost = f", {self._budget.spent:.4f} USD" if self.model.price else ""
        failed = f", {self.failed} calls failed: the same command asks them again"
        return f"judge {self.signature}: {self.asked} verdicts asked now{cost}" + (
            failed if self.failed else ""
        )

    def ask(self, queries: Sequence[Query]) -> list[str | None]:
        """The judge's reply to each query, None where none was got.

        Replies of earlier commands count where their prompt was the same, letter for letter.
        """
        known = {q.folder: self._known(self.place(q.folder)) for q in queries}
        missing = self.missing(queries)
        if missing:
            for query, row in asyncio.run(self._ask_all(missing)):
                known[query.folder][query.key] = (_sha(query), row["output"])
        return [
            reply if sha == _sha(query) else None
            for query in queries
            for sha, reply in [known[query.folder].get(query.key, ("", None))]
        ]

    def place(self, folder: Path) -> Path:
        """Where this judge's replies about what lies in `folder` are kept, in the form of a run."""
        return folder / "judges" / self._slug

    def missing(self, queries: Sequence[Query]) -> list[Query]:
        """The queries without a reply, which are what `ask` would pay for."""
        known = {q.folder: self._known(self.place(q.folder)) for q in queries}
        return [q for q in queries if known[q.folder].get(q.key, ("",))[0] != _sha(q)]

    def most(self, queries: Sequence[Query]) -> float | None:
        """What these queries may cost at most, in USD; None without a price."""
        if self.model.price is None:
            return None
        return sum(self._most(self._body(query)) for query in queries)

    def _known(self, place: Path) -> dict[runs.Key, tuple[str, str | None]]:
        """The settled replies of a folder: key → the prompt's hash and the reply."""
        if not (place / "run.json").is_file():
            return {}
        rows = runs.read_run(place).rows
        return {
            key: (row.get("prompt_sha256", ""), row.get("output"))
            for key, row in rows.items()
            if runs.settled(row)
        }

    async def _ask_all(self, queries: Sequence[Query]) -> list[tuple[Query, dict[str, Any]]]:
        key = api_keys.find_key(self.provider)
        if key is None and self.provider.key_required:
            raise UserError(f"{self.name} needs its key: set {self.provider.key}")
        speed = self.provider.concurrency
        account = Account(
            self.provider, self._url, key or api_keys.NO_KEY, Pace(speed.start, speed.max)
        )
        logs: dict[Path, runs.PredictionLog] = {}
        answered: list[tuple[Query, dict[str, Any]]] = []
        async with contextlib.AsyncExitStack() as stack:
            for folder in dict.fromkeys(query.folder for query in queries):
                place = self.place(folder)
                logs[folder] = stack.enter_context(runs.PredictionLog(place))
                runs.write_json(place / "run.json", self._manifest())
            session = await stack.enter_async_context(
                Session(self.model, account, self._budget, self.model.price)
            )
            await asyncio.gather(
                *(self._settle(session, query, logs, answered, key) for query in queries)
            )
        return answered

    async def _settle(
        self,
        session: Session,
        query: Query,
        logs: Mapping[Path, runs.PredictionLog],
        answered: list[tuple[Query, dict[str, Any]]],
        key: str | None,
    ) -> None:
        body = self._body(query)
        try:
            answer = await session.ask(body, most=self._most(body), droppable=list(self._wishes()))
        except Stopped:
            self.failed += 1
            return
        reply = answer.reply
        task, item_id, variant, sample = query.key
        text = reply.text if reply else None
        row = {
            "task": task,
            "item_id": item_id,
            "variant": variant,
            "sample": sample,
            "prompt_sha256": _sha(query),
            "output": text if text is None or key is None else api_keys.hide(text, [key]),
            "status": answer.status,
            "cause": answer.cause,
            "token_usage": reply.usage if reply else {},
            "performance": {"latency_ms": answer.latency_ms},
            "returned_model": reply.model if reply else None,
            "sent_at": answer.sent_at,
        }
        logs[query.folder].append(row)
        if runs.settled(row):
            self.asked += 1
            answered.append((query, row))
        else:
            self.failed += 1

    def _wishes(self) -> dict[str, Any]:
        return providers.applied(self.model, {"temperature": 0} | self.model.request)[0]

    def _body(self, query: Query) -> dict[str, Any]:
        limit = self._prompt["max_tokens"]
        return providers.payload(
            self.model, query.prompt, wishes=self._wishes(), answer_limit=limit
        )

    def _most(self, body: Mapping[str, Any]) -> float:
        """What one call may cost at most, in USD: its whole limit, and a token per two bytes."""
        if self.model.price is None:
            return 0.0
        tokens_in = math.ceil(len(body["messages"][0]["content"].encode()) / 2) + 20
        usage = {"input_tokens": tokens_in, "output_tokens": body[self.model.limit.parameter]}
        return self.model.price.cost(usage) or 0.0

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": runs.FORMAT_VERSION,
            "tasks": [],
            "judge": {"id": self.name, "provider": self.model.provider, "url": self._url},
            "prompt_version": self._prompt["version"],
        }


def _sha(query: Query) -> str:
    return prompt_sha256(query.prompt)
