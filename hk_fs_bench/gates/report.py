"""What the gates found, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.table import Table

Severity = Literal["fail", "report"]


@dataclass(frozen=True)
class Finding:
    """One thing wrong: in an item, or (item None) in the set."""

    gate: str
    item: str | None
    message: str
    severity: Severity = "fail"

    def __str__(self) -> str:
        return f"{self.severity} {self.gate} {self.item or 'set'}: {self.message}"


@dataclass(frozen=True)
class Figure:
    """A measured share, count or mean of the set, and the band it should stay in."""

    gate: str
    name: str
    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def ok(self) -> bool:
        """Within the band, rounding noise aside."""
        above = self.low is None or self.value >= self.low - 1e-9
        return above and (self.high is None or self.value <= self.high + 1e-9)


@dataclass
class GateReport:
    """Findings and figures of one run; `enforced` says whether gates over the set may fail it."""

    mcq: int
    oeq: int
    enforced: bool
    findings: list[Finding] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    @property
    def failures(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "fail"]

    @property
    def ok(self) -> bool:
        return not self.failures

    def figure(self, name: str) -> float:
        """The value of the figure `name`; KeyError if it wasn't measured."""
        for figure in self.figures:
            if figure.name == name:
                return figure.value
        raise KeyError(name)

    def extend(self, findings: Iterable[Finding]) -> None:
        self.findings.extend(findings)

    def measure(
        self,
        gate: str,
        name: str,
        value: float,
        low: float | None = None,
        high: float | None = None,
        *,
        n: int,
        report_only: bool = False,
    ) -> None:
        """Note a figure; out of its band it is a finding on the set."""
        figure = Figure(gate, name, value, low, high, n)
        self.figures.append(figure)
        if not figure.ok:
            severity: Severity = "fail" if self.enforced and not report_only else "report"
            message = f"{name} is {_show(value)}, wanted {_band(figure)} (n={n})"
            self.findings.append(Finding(gate, None, message, severity))

    def table(self, *, figures: bool = True) -> Table:
        """One row a gate and, with `figures`, one a figure."""
        from rich.table import Table

        table = Table(title=f"Gates over {self.mcq} MCQ and {self.oeq} OEQ")
        for column in ("gate", "failures", "reports", "figure", "value", "wanted"):
            table.add_column(column, justify="left" if column in ("gate", "figure") else "right")
        for gate in self.gates():
            found = [finding for finding in self.findings if finding.gate == gate]
            fails = sum(finding.severity == "fail" for finding in found)
            table.add_row(gate, str(fails), str(len(found) - fails), "", "", "")
            for figure in self.figures if figures else ():
                if figure.gate == gate:
                    mark = "" if figure.ok else " ✗"
                    value = _show(figure.value) + mark
                    table.add_row("", "", "", figure.name, value, _band(figure))
        return table

    def gates(self) -> list[str]:
        """The gates that ran, in their order."""
        found = {finding.gate for finding in self.findings}
        return sorted(found | {figure.gate for figure in self.figures} | set(GATES), key=_order)


GATES = (
    "1 schema",
    "1 order",
    "1 canary",
    "2 references",
    "2 check",
    "2 numbers",
    "3 keys",
    "4 give-aways",
    "4 ascending",
    "4 probe",
    "5 options",
    "5 negatives",
    "6 stems",
    "7 cue",
    "8 facts",
    "8 patterns",
    "9 length",
    "10 runs",
    "quotas",
)


def _order(gate: str) -> tuple[int, str]:
    return (GATES.index(gate), "") if gate in GATES else (len(GATES), gate)


def _show(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3f}"


def _band(figure: Figure) -> str:
    if figure.low is None and figure.high is None:
        return ""
    if figure.low is None:
        return f"≤ {_show(figure.high or 0.0)}"
    if figure.high is None:
        return f"≥ {_show(figure.low)}"
    return f"{_show(figure.low)} to {_show(figure.high)}"
