"""models.yaml: which hosted models there are, how each is asked, and what is known of it.

The file is data with a schema: a model is added or mended there, never in code. Every fault is
one line that names the file and the line.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic import field_validator as validator

from hk_fs_bench import yaml_lines
from hk_fs_bench.errors import UserError
from hk_fs_bench.schema import explain

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
# Request fields that make a run what it is: what is asked, how long the answer may be, one reply.
OWN_FIELDS = frozenset(
    ("model", "messages", "max_tokens", "max_completion_tokens", "n", "stream", "stream_options")
)


def _no_own(fields: dict[str, Any]) -> dict[str, Any]:
    if own := sorted(OWN_FIELDS & fields.keys()):
        raise ValueError(f"{', '.join(own)} is the runner's to set")
    return fields


def check_label(value: str) -> str:
    """What a service or a table calls a model, or ValueError: it stands in files and tables."""
    if not value.strip() or len(value) > 200 or not value.isprintable():
        raise ValueError("a model's name is printable text of at most 200 characters")
    return value


Fields = Annotated[dict[str, Any], AfterValidator(_no_own)]
Label = Annotated[str, AfterValidator(check_label)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fact(_Strict):
    """Something that is known of a model or a provider, since when, and from where."""

    fact: str
    date: datetime.date
    source: str


class Concurrency(_Strict):
    """Calls in flight: how many at first, and at most, whatever the service would bear."""

    start: int = Field(default=10, ge=1)
    max: int = Field(default=100, ge=1)


class Provider(_Strict):
    """An account at a service: its address, its key, and how it says that the money is gone.

    `base_url` is None where the user names the address. `no_credit_codes` are the error codes or
    types that mean an empty account; the same words are a per-minute limit elsewhere.
    """

    base_url: str | None
    key: EnvName
    key_required: bool = True
    deployment: Literal["api", "local"] = "api"
    concurrency: Concurrency = Concurrency()
    no_credit_codes: tuple[str, ...] = ("insufficient_quota",)
    facts: tuple[Fact, ...] = ()

    @validator("base_url")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        return value if value is None else check_url(value)


class Thinking(_Strict):
    """How thinking is switched. `mode` none: the model has no such switch.

    `budget` is how many tokens are set aside for thinking where one limit covers both.
    """

    mode: Literal["off", "minimal", "on", "none"]
    request: Fields = {}
    budget: int = Field(default=0, ge=0, le=10_000_000)


class Limit(_Strict):
    """The request field that limits the output, and whether thinking counts in it."""

    parameter: Literal["max_tokens", "max_completion_tokens"]
    includes_thinking: bool


class Parameters(_Strict):
    """What the API does with a request field: takes it, refuses it, drops or caps it in silence."""

    accepted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    capped: dict[str, float] = {}


class Search(_Strict):
    """Whether the model looks things up: always means that it can't be switched off."""

    state: Literal["off", "on", "always", "unknown"]
    request: Fields = {}

    @property
    def label(self) -> str:
        return "on" if self.state == "always" else self.state


class Price(_Strict):
    """USD per million tokens. Where a part has no price of its own, it costs as its whole."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    reasoning: Dollars | None = None
    date: datetime.date | None = None
    source: str | None = None

    def cost(self, usage: Mapping[str, int | None]) -> float | None:
        """USD for one reply; None if its tokens are not known."""
        tokens_in, tokens_out = usage.get("input_tokens"), usage.get("output_tokens")
        if tokens_in is None or tokens_out is None:
            return None
        cached = min(usage.get("cached_input_tokens") or 0, tokens_in)
        thought = min(usage.get("reasoning_tokens") or 0, tokens_out)
        cached_price = self.input if self.cached_input is None else self.cached_input
        thought_price = self.output if self.reasoning is None else self.reasoning
        per_million = (
            (tokens_in - cached) * self.input
            + cached * cached_price
            + (tokens_out - thought) * self.output
            + thought * thought_price
        )
        return per_million / 1e6


class Paper(_Strict):
    """The paper's row: its name, the id and prices that it prints, its mean tokens a question."""

    name: str
    thinking: bool
    id: str
    price_input: str
    price_output: str
    tokens_per_question: dict[str, int] = {}


class Model(_Strict):
    """One configuration: a model in one mode, at one provider.

    `model` is org/name for tables, `id` what the service calls it; both None where the user names
    them. `request` holds fields to send with every call, as a JSON schema for the reply.
    """

    provider: str
    model: Label | None
    id: Label | None
    paper: Paper | None = None
    thinking: Thinking
    limit: Limit
    stream: bool = False
    parameters: Parameters = Parameters()
    search: Search
    request: Fields = {}
    price: Price | None
    timeout_s: Seconds = 300
    deadline_s: Seconds = 1800
    facts: tuple[Fact, ...] = ()


class Regimes(_Strict):
    """The sampling fields that each regime calls for."""

    paper: Fields
    greedy: Fields


class Registry(_Strict):
    """The whole file."""

    format: Literal[1]
    regimes: Regimes
    providers: dict[Name, Provider]
    models: dict[Name, Model]

    def model(self, name: str) -> Model:
        """The configuration of that name; UserError with the names there are."""
        try:
            return self.models[name]
        except KeyError:
            near = difflib.get_close_matches(name, self.models, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else ""
            raise UserError(
                f"no model {name} in models.yaml; {hint} there are {', '.join(self.models)}"
            ) from None

    def sampling(self, regime: Literal["paper", "greedy"]) -> dict[str, Any]:
        """The sampling fields of a regime."""
        return self.regimes.paper if regime == "paper" else self.regimes.greedy

    def provider(self, model: Model) -> Provider:
        return self.providers[model.provider]


def check_url(value: str) -> str:
    """A base URL without blanks around it, or ValueError with what is wrong with it."""
    value = value.strip()
    if not value.isprintable() or " " in value:
        raise ValueError(f"{value!r} is no address: it holds a blank or a control character")
    try:
        parts = urlsplit(value)
        _ = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise ValueError(f"{value!r} is no address ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is no address; it begins with http:// or https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an address holds no password and no query; put the key in its variable")
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ValueError("leave /chat/completions off: the base URL ends before it")
    return value


def check_price(text: str) -> Price:
    """`IN/OUT`, USD per million tokens, as a price of the user's own."""
    try:
        values = [float(part) for part in text.split("/")]
    except ValueError:
        values = []
    if len(values) != 2 or not all(math.isfinite(v) and v >= 0 for v in values):
        raise UserError(f"--price {text} is not IN/OUT in USD per million tokens, as 0.5/3")
    return Price(input=values[0], output=values[1], source="given with --price")


def default_path() -> Path:
    """The checkout's models.yaml."""
    path = Path(__file__).resolve().parent.parent / "api_runners" / "models.yaml"
    if not path.is_file():
        raise UserError("api_runners/models.yaml is missing; run from a checkout, or name a file")
    return path


def load(path: Path | None = None) -> Registry:
    """Read and check a models.yaml; UserError with file and line for every fault."""
    path = path or default_path()
    raw, lines = yaml_lines.read(path)
    if isinstance(raw, dict):
        # Entries that begin with a dot only hold what others share through anchors.
        raw = {k: v for k, v in raw.items() if not str(k).startswith(".")}
    try:
        registry = Registry.model_validate(raw)
    except ValidationError as error:
        place = error.errors(include_url=False)[0]["loc"]
        line = yaml_lines.line_of(lines, place)
        raise UserError(f"{path} line {line}: {explain(error)}") from None
    for name, model in registry.models.items():
        if model.provider not in registry.providers:
            line = yaml_lines.line_of(lines, ("models", name, "provider"))
            raise UserError(
                f"{path} line {line}: model {name} names the provider {model.provider}; "
                f"there are {', '.join(registry.providers)}"
            )
    return registry
