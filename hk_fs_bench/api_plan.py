"""What a hosted model's run wants, what its folder has already, and what the rest will cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hk_fs_bench import api_manifest, items, prompts, providers, runs
from hk_fs_bench.api_models import Model, Price, Provider, Registry, check_label, check_url
from hk_fs_bench.errors import UserError

Regime = Literal["paper", "greedy"]
MOST_SAMPLES = 100


@dataclass(frozen=True)
class Request:
    """One call that a run wants: its key, its prompt, and the body that carries it."""

    key: runs.Key
    prompt: str
    body: dict[str, Any]


@dataclass
class Estimate:
    """Tokens and USD of the calls still to be made; None where they can't be known.

    The expected output comes from the paper's own token counts, the most from the limits.
    """

    tokens_in: int = 0
    tokens_out: int | None = 0
    tokens_out_most: int = 0
    usd: float | None = 0.0
    usd_most: float | None = 0.0


@dataclass
class Job:
    """One configuration's run. `todo`, `done`, `failed`, `tokens`, `usd` are the folder's state.

    `usd_most` is what the replies may have cost whose tokens are not known: answers without usage,
    and replies that were lost.
    """

    name: str
    model: Model
    provider: Provider
    base_url: str
    folder: Path
    price: Price | None
    manifest: dict[str, Any]
    requests: list[Request]
    sampling: dict[str, Any]
    addresses: tuple[str, ...]
    retry_failures: bool = False
    todo: list[Request] = field(default_factory=list)
    done: int = 0
    failed: int = 0
    tokens: int = 0
    usd: float = 0.0
    usd_most: float = 0.0

    @property
    def complete(self) -> bool:
        return self.done == len(self.requests)

    def most(self, request: Request) -> float:
        """What one call may cost at most, in USD: its whole limit, and a token per two bytes."""
        tokens_in = math.ceil(len(request.prompt.encode()) / 2) + 20
        tokens_out = request.body.get(self.model.limit.parameter, 0)
        return max(
            self._cost(tokens_in, tokens_out) or 0.0,
            self._cost(tokens_in, tokens_out, tokens_out) or 0.0,
        )

    def estimate(self) -> Estimate:
        total = Estimate()
        expected = self.model.paper.tokens_per_question if self.model.paper else {}
        # A cell that the paper leaves open is taken for the mean of its neighbours.
        usual = sum(expected.values()) // len(expected) if expected else None
        for request in self.todo:
            tokens_in = math.ceil(len(request.prompt) / 4) + 8
            limit = request.body.get(self.model.limit.parameter, 0)
            both = expected.get(request.key[0], usual)
            total.tokens_in += tokens_in
            total.tokens_out_most += limit
            if both is None or total.tokens_out is None:
                total.tokens_out = total.usd = None
            else:
                out = min(max(0, both - tokens_in), limit)
                total.tokens_out += out
                total.usd = _sum(total.usd, self._cost(tokens_in, out))
            total.usd_most = _sum(
                total.usd_most, None if self.price is None else self.most(request)
            )
        return total

    def read_folder(self) -> None:
        """Find out what is done.

        Raises:
            UserError: the folder's answers are another model's, dataset's or protocol's.
        """
        rows: Mapping[runs.Key, Mapping[str, Any]] = {}
        if (self.folder / "run.json").is_file():
            old = runs.read_run(self.folder)
            rows = old.rows
            if rows:
                api_manifest.refuse_another_run(self.folder, old.manifest, self.manifest)
                api_manifest.inherit(self.manifest, old.manifest)
                if self.price is None and self.manifest["price"] is not None:
                    self.price = Price.model_validate(self.manifest["price"])
        elif (log := self.folder / "predictions.jsonl").is_file() and log.stat().st_size:
            raise UserError(
                f"{self.folder} has predictions and no run.json; move it away, or name another "
                "--out"
            )
        settled = {key for key, row in rows.items() if runs.settled(row)}
        failed = set(rows) - settled
        wanted = {request.key for request in self.requests}
        skipped = settled if self.retry_failures else set(rows)
        self.todo = [r for r in self.requests if r.key not in skipped]
        self.done, self.failed = len(wanted & settled), len(wanted & failed)
        sizes = {request.key: request for request in self.requests}
        self.tokens, self.usd = 0, 0.0
        self.usd_most = api_manifest.lost_usd(self.manifest)
        for key, row in rows.items():
            if runs.settled(row):
                self.count(
                    sizes.get(key, self.requests[0]), api_manifest.usage_of(self.folder, row)
                )

    def count(self, request: Request, usage: Mapping[str, int | None]) -> None:
        """Add an answer's tokens and money."""
        self.tokens += (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
        if self.price is not None:
            cost = self.price.cost(usage)
            self.usd += cost or 0.0
            self.usd_most += self.most(request) if cost is None else 0.0

    def _cost(self, tokens_in: int, tokens_out: int, thought: int = 0) -> float | None:
        usage = {"input_tokens": tokens_in, "output_tokens": tokens_out}
        usage["reasoning_tokens"] = thought
        return None if self.price is None else self.price.cost(usage)


def plan(
    registry: Registry,
    name: str,
    dataset: items.Dataset,
    *,
    tasks: Sequence[str],
    regime: Regime,
    out: Path,
    samples: int = 1,
    limit: int | None = None,
    service_id: str | None = None,
    base_url: str | None = None,
    model_id: str | None = None,
    price: Price | None = None,
    retry_failures: bool = False,
) -> Job:
    """The run of one configuration, with what its folder holds already. Nothing is written.

    Args:
        name: an entry of models.yaml.
        limit: prompts a task at most.
        service_id, base_url: for an entry that leaves them open.
        model_id: org/name for tables, where it is not the entry's.
        price: in place of the entry's.

    Raises:
        UserError: an unknown model or task, an entry that lacks what was not given, a task that
            needs logprobs, a folder that holds another run.
    """
    if samples > MOST_SAMPLES:
        raise UserError(f"--samples {samples}: no more than {MOST_SAMPLES} answers a question")
    entry = registry.model(name)
    provider = registry.provider(entry)
    model, url = _complete(name, entry, provider, service_id, base_url, model_id)
    price = price or model.price
    sampling = registry.sampling(regime)
    wishes, not_applied = providers.applied(model, sampling | model.request)
    chosen = [prompts.load_task(task) for task in prompts.expand(tasks)]
    wanted: list[Request] = []
    planned = dict.fromkeys((task.name for task in chosen), 0)
    # Samples outermost: a run that stops early has whole samples.
    for sample in range(samples):
        for task in chosen:
            for key, prompt in _prompts(task, dataset, limit, sample):
                body = providers.payload(
                    model, prompt, wishes=wishes, answer_limit=task.max_gen_toks
                )
                wanted.append(Request(key, prompt, body))
                planned[task.name] += 1
    if not wanted:
        raise UserError(
            f"there is nothing to ask: {dataset.source} has no question for {', '.join(planned)}"
            if planned
            else "there is nothing to ask: name a task with --tasks"
        )
    manifest = api_manifest.manifest_of(
        name,
        model,
        provider,
        url,
        dataset,
        chosen,
        regime=regime,
        parameters_sent=providers.sent_fields(wanted[0].body),
        parameters_not_applied=not_applied,
        planned=planned,
        samples=samples,
        limit=limit,
        price=price,
    )
    shown = manifest["model"]["requested_id"]
    slug = name if entry.id else api_manifest.folder_name(shown) or name
    job = Job(
        name=name if entry.id else shown,
        model=model,
        provider=provider,
        base_url=url,
        folder=out / f"{slug}-{regime}",
        price=price,
        manifest=manifest,
        requests=wanted,
        sampling=sampling,
        addresses=_addresses(dataset),
        retry_failures=retry_failures,
    )
    job.read_folder()
    return job


def _complete(
    name: str,
    model: Model,
    provider: Provider,
    service_id: str | None,
    base_url: str | None,
    model_id: str | None,
) -> tuple[Model, str]:
    """The entry with what it leaves open filled in, and the address to ask."""
    if model.id is not None and service_id is not None:
        raise UserError(f"{name} has its id in models.yaml; --id is for an entry without one")
    if model.id is None and not service_id:
        raise UserError(f"{name} can be any model: name the one that the server serves with --id")
    for option, given in (("--id", service_id), ("--model-id", model_id)):
        try:
            check_label(given or "-")
        except ValueError as error:
            raise UserError(f"{option}: {error}") from None
    open_address = provider.base_url is None or provider.deployment == "local"
    if base_url is not None and not open_address:
        raise UserError(
            f"{name} has its address in models.yaml; --base-url is for openai-compatible and "
            "local-server"
        )
    try:
        url = check_url(base_url) if base_url is not None else provider.base_url
    except ValueError as error:
        raise UserError(f"--base-url: {error}") from None
    if url is None:
        raise UserError(f"{name} can be at any address: name it with --base-url")
    sent = model.id or service_id or ""
    label = model_id or model.model or api_manifest.shown_id(sent)
    return model.model_copy(update={"id": sent, "model": label}), url


def _prompts(
    task: prompts.Task, dataset: items.Dataset, limit: int | None, sample: int
) -> list[tuple[runs.Key, str]]:
    if task.output_type != "generate_until":
        raise UserError(
            f"{task.name} compares probabilities, which chat services don't give; run it with "
            "lm-eval"
        )
    docs = items.docs(dataset, **task.data_options)[:limit]
    return [((task.name, d["id"], d["variant"], sample), prompts.render(task, d)) for d in docs]


def _addresses(dataset: items.Dataset) -> tuple[str, ...]:
    """Words in an address that mean this benchmark: a model that looked there saw the keys."""
    organisation = items.HUB_DATASET.split("/")[0]
    hub = dataset.source.split("@")[0]
    own = re.fullmatch(r"[\w.-]+/[\w.-]+", hub) and not Path(hub).is_dir()
    return (organisation, hub) if own else (organisation,)


def _sum(total: float | None, part: float | None) -> float | None:
    return None if total is None or part is None else total + part
