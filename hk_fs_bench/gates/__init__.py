"""The gates that every released item passes, and the quotas of the first release.

    report = run_gates(mcq, oeq)
    report.ok, report.failures, report.figure("longest"), report.table()

Thresholds and their reasons are in `data/gates.yaml`. Gates over a single item always fail; gates
over the set report only, while it has fewer MCQ than `set_gates_from`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hk_fs_bench.code_index import CodeFact, load_facts
from hk_fs_bench.gates import content, giveaways, spread, wording
from hk_fs_bench.gates.base import Item, is_mcq, settings
from hk_fs_bench.gates.report import Figure, Finding, GateReport

__all__ = ["Figure", "Finding", "GateReport", "run_gates"]


def run_gates(
    mcq: Sequence[Item],
    oeq: Sequence[Item] = (),
    *,
    facts: Mapping[str, CodeFact] | None = None,
    topics: Collection[str] | None = None,
    probe: bool = True,
) -> GateReport:
    """Run all gates over the items of one split, as dicts of the dataset's format, in file order.

    Args:
        facts: the Code's facts; the committed ones by default.
        topics: the topic names allowed; None doesn't check them.
        probe: whether to train the choices-only probe, the one slow gate (half a minute).
    """
    known = load_facts() if facts is None else facts
    report = GateReport(len(mcq), len(oeq), len(mcq) >= settings()["set_gates_from"])
    for subset, items in (("mcq", mcq), ("oeq", oeq)):
        report.extend(content.schema(items, subset, topics))
    broken = {finding.item for finding in report.findings if "empty" not in finding.message}
    mcq = [item for item in mcq if item.get("id") not in broken]
    oeq = [item for item in oeq if item.get("id") not in broken]
    for subset, items in (("mcq", mcq), ("oeq", oeq)):
        report.extend(content.order(items, subset))
    every = [*mcq, *oeq]
    report.extend(content.canary(every))
    for item in every:
        report.extend(content.references(item, known))
        report.extend(content.checks(item))
        report.extend(content.numbers(item, known))
        report.extend(wording.stems(item))
        report.extend(wording.cue(item))
        report.extend(wording.length(item))
        report.extend(content.runs(item))
        if is_mcq(item):
            report.extend(wording.options(item))
            report.extend(giveaways.ascending(item))
    spread.facts(every, report)
    if mcq:
        _set_gates(mcq, report, probe)
    spread.quotas(mcq, oeq, report)
    return report


def _set_gates(mcq: Sequence[Item], report: GateReport, probe: bool) -> None:
    giveaways.key_letters(mcq, report)
    giveaways.giveaways(mcq, report)
    if probe and len(mcq) > 1:
        from hk_fs_bench.gates.probe import run_probe

        limit = settings()["giveaways"]["probe_accuracy"]
        accuracy = run_probe(mcq).accuracy
        report.measure("4 probe", "choices-only probe", accuracy, None, limit, n=len(mcq))
    wording.negatives(mcq, report)
    wording.cue_share(mcq, report)
    spread.patterns(mcq, report)
