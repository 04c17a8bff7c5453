"""leaderboard.json → tables: CSV for spreadsheets, Markdown and LaTeX in the paper's layout.

Names are data: a cell never becomes a formula, markup or a command.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

MCQ = {"hk_fs_mcq_hk": "MCQ, Hong Kong context", "hk_fs_mcq_nohk": "MCQ, no context"}
OEQ = "hk_fs_oeq"
_FIGURES = ("accuracy", "accuracy_on_valid", "non_conservative", "invalid_rate")
# What spreadsheets take for the beginning of a formula, whatever blanks stand before it.
_FORMULA = re.compile(r"^[\s\x00-\x20\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20|%]|^[\t\r\n]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    # Behind the end of a row a bracket would be a length.
    "[": "{[}",
    "]": "{]}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
_MARKDOWN = re.compile(r"([\\`*_\[\]|~<>&$#])")

Cell = str | int | float | None
Row = Mapping[str, Any]


def safe_cell(value: Cell) -> Cell:
    """A cell that no spreadsheet computes: text that would begin a formula gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = value.replace("\x00", "")
    return f"'{text}" if _FORMULA.search(text) else text


def to_csv(board: Row) -> str:
    """One row an entry and task, shares as fractions; texts are quoted, numbers are not."""
    rows = [row for entry in board["entries"] for row in _csv_rows(entry)]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if (v := row.get(c)) is None else safe_cell(v) for c in columns])
    return out.getvalue()


def _csv_rows(entry: Row) -> Iterator[dict[str, Cell]]:
    for task, own in entry["tasks"].items():
        rank = own.get("rank") or {}
        row: dict[str, Cell] = {
            "entry": entry["slug"],
            "model": entry["model"]["id"],
            "mode": entry["model"]["mode"],
            "search": entry["model"]["search"],
            "provider": entry["model"]["provider"],
            "regime": entry["protocol"]["regime"],
            "submitter": entry["submitter"]["login"],
            "date": entry["date"],
            "kind": entry["kind"],
            "label": entry["label"],
            "flags": " ".join(flag["kind"] for flag in entry["flags"]),
            "ranked": str(entry["ranked"]).lower(),
            "task": task,
            "answered": own["answered"],
            "rank_best": rank.get("best"),
            "rank_worst": rank.get("worst"),
            "tie_group": rank.get("tie_group"),
        }
        for name, figure in _figures(own).items():
            low, high = figure["ci95"] or (None, None)
            row |= {name: figure["value"], f"{name}_low": low, f"{name}_high": high}
        row |= {"seconds": own["seconds"]["mean"], "usd": own["usd"]["mean"]}
        row |= {f"{name}_tokens": mean["mean"] for name, mean in own["tokens"].items()}
        yield row | {"signature": own["signature"]}


def _figures(own: Row) -> dict[str, Row]:
    found = {name: own[name] for name in _FIGURES if name in own}
    return found | (own.get("metrics") or {})


def to_markdown(board: Row) -> str:
    """The paper's tables with our entries, and the paper's own beside them."""

    def escape(text: str) -> str:
        # A colon before slashes makes a link of a text.
        return _MARKDOWN.sub(r"\\\1", " ".join(text.split())).replace("://", "&#58;//")

    parts = []
    for title, head, rows in tables(board):
        lines = [f"## {escape(title)}", "", "| " + " | ".join(map(escape, head)) + " |"]
        lines.append("|---|" + "---:|" * (len(head) - 1))
        lines += ["| " + " | ".join(escape(str(cell)) for cell in row) + " |" for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, escape(NOTE)]) + "\n"


def to_latex(board: Row) -> str:
    """The same as tabulars for booktabs."""
    parts = []
    for title, head, rows in tables(board):
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex(title)}}}"]
        lines += [rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule"]
        lines += [" & ".join(map(latex, head)) + r" \\", r"\midrule"]
        lines += [" & ".join(latex(str(cell)) for cell in row) + r" \\" for row in rows]
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, f"% {' '.join(NOTE.split())}"]) + "\n"


def latex(text: str) -> str:
    """A text that LaTeX prints as it stands."""
    return "".join(_LATEX.get(char, char) for char in " ".join(text.split()))


NOTE = (
    "In percent. Accuracy: over all answers, in brackets over those that could be read. "
    "*: outside the ranks (see the entry's flags). p: a plumbing check. r: recorded, not "
    "recomputed here. The paper's rows are on the authors' own items and are not comparable."
)
Table = tuple[str, Sequence[str], list[Sequence[Cell]]]


def tables(board: Row) -> Iterator[Table]:
    """(title, head, rows) of each table that has rows."""
    entries = board["entries"]
    for task, title in MCQ.items():
        rows = [_mcq_row(entry, entry["tasks"][task]) for entry in _best(entries, task)]
        head = ("Model", "Acc. (valid)", "95% interval", "Rank", "Unsafe", "Sec.", "Tokens")
        if rows:
            yield title, head, rows
    if rows := [_oeq_row(entry, entry["tasks"][OEQ]) for entry in _best(entries, OEQ)]:
        head = ("Model", "BERTScore", "BLEU-4", "METEOR", "ROUGE-L", "Sec.", "Tokens")
        yield "OEQ", head, rows
    yield from _paper(board["paper"])


def _best(entries: Sequence[Row], task: str) -> list[Row]:
    """Ranked entries by accuracy, then the others; open answers by name."""

    def order(entry: Row) -> tuple[bool, float, str]:
        figure = entry["tasks"][task].get("accuracy") or {}
        return not entry["ranked"], -(figure.get("value") or 0), entry["slug"]

    return sorted((e for e in entries if task in e["tasks"]), key=order)


def _name(entry: Row) -> str:
    marks = "" if entry["ranked"] else "*"
    return f"{entry['name']}{marks}{'p' if entry['kind'] == 'plumbing_check' else ''}"


def _percent(figure: Row | None) -> str:
    if figure is None or figure["value"] is None:
        return "–"
    return f"{100 * figure['value']:.2f}" + ("r" if figure["label"] == "recorded" else "")


def _tokens(own: Row) -> str:
    return _number(own["tokens"]["output"]["mean"], 0)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else format(value, f".{digits}f")


def _mcq_row(entry: Row, own: Row) -> Sequence[Cell]:
    accuracy, rank = own["accuracy"], own["rank"]
    interval = accuracy["ci95"]
    return (
        _name(entry),
        f"{_percent(accuracy)} ({_percent(own['accuracy_on_valid'])})",
        "–" if interval is None else " to ".join(f"{100 * end:.2f}" for end in interval),
        "–" if rank is None else "–".join(map(str, sorted({rank["best"], rank["worst"]}))),
        _percent(own["non_conservative"]),
        _number(own["seconds"]["mean"], 1),
        _tokens(own),
    )


def _oeq_row(entry: Row, own: Row) -> Sequence[Cell]:
    metrics = own["metrics"]
    scores = [name for name in metrics if name.startswith("bertscore_f1")]
    bert = ", ".join(
        _percent(metrics[name]) + (f" {name.partition(':')[2]}" if ":" in name else "")
        for name in scores
    )
    overlap = (_percent(metrics.get(name)) for name in ("bleu4", "meteor", "rouge_l"))
    return _name(entry), bert or "–", *overlap, _number(own["seconds"]["mean"], 1), _tokens(own)


def _paper(paper: Row) -> Iterator[Table]:
    """The paper's Table 3 as it prints it; null stays empty."""
    columns: dict[str, tuple[str, Sequence[str]]] = {
        "mcq_hk": ("MCQ, Hong Kong context", ("accuracy", "seconds", "tokens")),
        "mcq_nohk": ("MCQ, no context", ("accuracy", "accuracy_valid", "seconds", "tokens")),
        "oeq": ("OEQ", ("bertscore_f1", "bleu4", "meteor", "rouge_l", "seconds", "tokens")),
        "human": ("OEQ, human", ("accuracy", "clarity")),
    }
    shown: Callable[[Any], Cell] = lambda value: "–" if value is None else value  # noqa: E731
    for name, (title, cells) in columns.items():
        rows: list[Sequence[Cell]] = [
            (
                row["model"] + (" (thinking)" if row["thinking"] else ""),
                *(shown(row[name].get(cell)) for cell in cells),
            )
            for row in paper["rows"]
            if row[name] is not None
        ]
        yield f"{paper['source']}, on the authors' items: {title}", ("Model", *cells), rows
