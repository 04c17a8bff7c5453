"""Several runs: what the data tell apart, items through all of them, plots, the command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import comparing, item_analysis, lm_eval_runs, plots, report, report_runs, scoring
from hk_fs_bench.errors import UserError
from hk_fs_bench.open_metrics import Wanted
from hk_fs_bench.runs import write_json
from tests.lm_eval_output import write

ROOT = Path(__file__).resolve().parent.parent
TASKS = ("hk_fs_mcq_hk", "hk_fs_mcq_nohk")


def other(key: str) -> str:
    return "ABCD"["ABCD".index(key) - 3]


def texts(dataset, right: int, n: int, wrong=other) -> list[str]:
    """Answers to the first n questions, the first `right` of them right."""
    keys = [item.answer for item in dataset.items("mcq")[:n]]
    letters = [key if i < right else wrong(key) for i, key in enumerate(keys)]
    return [json.dumps({"answer": letter, "reason": "r"}) for letter in letters]


def make_run(folder: Path, outputs: dict, name: str, **model):
    run = lm_eval_runs.convert(write(folder, outputs))
    run.manifest["model"] |= {"id": name, "requested_id": name} | model
    write_json(run.folder / "run.json", run.manifest)
    for path in [*run.folder.glob("samples_*"), *run.folder.glob("results_*")]:
        path.unlink()
    return run


@pytest.fixture
def scored(tmp_path, dataset):
    """Four runs over 24 questions: two nearly alike, one worse, one at the bottom."""
    n = 24
    made = []
    for name, right in (("a", 23), ("b", 22), ("c", 12), ("d", 2)):
        outputs = {task: texts(dataset, right, n) for task in TASKS}
        sentences = [item.reference_answer for item in dataset.items("oeq")[:12]]
        outputs["hk_fs_oeq"] = [
            f"Clause B6.1. {text}" if i < right / 2 else "Clause B99.9." for i, text in
            enumerate(sentences)
        ]  # fmt: skip
        made.append(make_run(tmp_path / name, outputs, f"org/{name}"))
    return scoring.score_runs(made, dataset, Wanted(("citations",)))


def test_ties_and_ranks(scored):
    table = comparing.compare(scored)["tasks"]["hk_fs_mcq_hk"]["accuracy"]
    assert table["ranks"] == {
        "org/a": [1, 2],
        "org/b": [1, 2],
        "org/c": [3, 3],
        "org/d": [4, 4],
    }
    assert table["ties"] == [["org/a", "org/b"], ["org/c"], ["org/d"]]
    pair = next(p for p in table["pairs"] if (p["first"], p["second"]) == ("org/a", "org/b"))
    assert not pair["separated"]
    assert pair["p_holm"] >= pair["p"] == 1.0
    assert pair["value"] == pytest.approx(1 / 24)
    assert len(table["pairs"]) == 6


def test_open_metrics_are_compared_too(scored):
    tasks = comparing.compare(scored)["tasks"]["hk_fs_oeq"]
    assert "cites" not in tasks
    assert "bleu4" not in tasks  # nobody asked for it
    exist = tasks["citations_exist"]
    assert exist["values"]["org/a"]["value"] > exist["values"]["org/d"]["value"]
    first = next(p for p in exist["pairs"] if (p["first"], p["second"]) == ("org/a", "org/d"))
    assert first["separated"]
    assert "bootstrap" in first["test"]


def test_against_a_baseline(scored):
    comparison = comparing.compare(scored, baseline=2)
    table = comparison["tasks"]["hk_fs_mcq_hk"]["accuracy"]
    assert {(p["first"], p["second"]) for p in table["pairs"]} == {
        (f"org/{name}", "org/c") for name in "abd"
    }
    assert "ranks" not in table
    signs = {p["first"]: p["value"] > 0 for p in table["pairs"]}
    assert signs == {"org/a": True, "org/b": True, "org/d": False}


def test_runs_of_one_model_keep_names_of_their_own(tmp_path, dataset):
    outputs = {"hk_fs_mcq_hk": texts(dataset, 2, 4)}
    runs = [
        make_run(tmp_path / "one", outputs, "org/m", mode="on"),
        make_run(tmp_path / "two", outputs, "org/m", mode="off"),
        make_run(tmp_path / "three", outputs, "org/m", mode="off"),
    ]
    names = comparing.labels(scoring.score_runs(runs, dataset))
    assert len(set(names)) == 3
    assert names[0] == "org/m · thinking on"


def test_unsafe_answers_are_compared_and_fewer_are_better(tmp_path, dataset):
    """One run errs towards danger and one towards safety, on the same questions."""
    items = dataset.items("mcq")[:60]
    outputs = {}
    for name, risk in (("deadly", "unsafe"), ("careful", "over_provision")):
        letters = [
            next((k for k, d in item.distractors.items() if d.risk == risk), item.answer)
            for item in items
        ]
        outputs[name] = [json.dumps({"answer": letter, "reason": "r"}) for letter in letters]
    made = [
        make_run(tmp_path / name, {"hk_fs_mcq_hk": texts_}, f"org/{name}")
        for name, texts_ in outputs.items()
    ]
    scored = scoring.score_runs(made, dataset)
    table = comparing.compare(scored)["tasks"]["hk_fs_mcq_hk"]["non_conservative"]
    assert table["values"]["org/careful"]["value"] == 0
    assert table["ranks"] == {"org/deadly": [2, 2], "org/careful": [1, 1]}
    (pair,) = table["pairs"]
    assert pair["value"] == table["values"]["org/deadly"]["value"] > 0.9
    assert pair["signature"].startswith("non_conservative_difference")
    text = rendered(report_runs.comparison_tables(comparing.compare(scored)))
    start = text.index("hk_fs_mcq_hk: unsafe (lower is better)")
    assert text.index("org/careful", start) < text.index("org/deadly", start)


def test_unlike_protocols_are_said(tmp_path, dataset):
    outputs = {"hk_fs_mcq_hk": texts(dataset, 2, 4)}
    one = make_run(tmp_path / "one", outputs, "org/one")
    two = make_run(tmp_path / "two", outputs, "org/two")
    two.manifest["protocol"] |= {"regime": "paper"}
    comparison = comparing.compare(scoring.score_runs([one, two], dataset))
    assert any("differ in regime (greedy, paper)" in text for text in comparison["warnings"])


def test_a_copy_of_a_run_is_said(tmp_path, dataset):
    outputs = {"hk_fs_mcq_hk": texts(dataset, 9, 12)}
    runs = [make_run(tmp_path / name, outputs, f"org/{name}") for name in ("one", "two")]
    other_answers = {"hk_fs_mcq_hk": texts(dataset, 8, 12)}
    runs.append(make_run(tmp_path / "three", other_answers, "org/three"))
    warnings = comparing.compare(scoring.score_runs(runs, dataset))["warnings"]
    assert [text for text in warnings if "letter for letter" in text] == [
        "hk_fs_mcq_hk: org/one and org/two gave the same answers letter for letter: is one a copy?"
    ]


def test_names_are_data(tmp_path, dataset):
    name = "org/m\x1b[31m\nx\u202e"
    run = make_run(tmp_path / "one", {"hk_fs_mcq_hk": texts(dataset, 2, 4)}, name)
    assert comparing.label(run.manifest["model"]) == "org/m\ufffd[31m\ufffdx\ufffd"
    done = command(run.folder)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout


def test_runs_without_a_task_in_common(tmp_path, dataset):
    one = make_run(tmp_path / "one", {"hk_fs_mcq_hk": texts(dataset, 2, 4)}, "org/one")
    two = make_run(tmp_path / "two", {"hk_fs_oeq": ["text"]}, "org/two")
    comparison = comparing.compare(scoring.score_runs([one, two], dataset))
    assert comparison["tasks"] == {}
    assert "nothing to compare" in report_runs.comparison_notes(comparison)[0]


def test_items_through_all_runs(scored, dataset):
    analysis = item_analysis.analyse(scored, dataset, "hk_fs_mcq_hk")
    by_id = {item["id"]: item for item in analysis["items"]}
    names = [item.id for item in dataset.items("mcq")[:24]]
    first, middle, last = (by_id[names[i]] for i in (0, 15, 23))
    assert first["difficulty"] == 1.0
    assert first["item_total"] is None
    assert "no variance" in first["reason"]
    assert middle["difficulty"] == 2 / 4
    assert middle["item_total"] > 0.8
    assert last["choices"][other(last["key"])] == 1.0
    assert analysis["best_runs"] == 2
    assert {"id": names[23], "why": f"2 of the 2 best runs chose {other(last['key'])}; "
            f"the key is {last['key']}"} in analysis["review"]  # fmt: skip
    assert [item["difficulty"] for item in analysis["items"]] == sorted(
        item["difficulty"] for item in analysis["items"]
    )


def test_an_item_that_better_runs_get_wrong(tmp_path, dataset):
    """The corrected correlation leaves the item itself out of the total."""
    made = []
    for number, right in enumerate((20, 14, 8, 2)):
        answers = texts(dataset, right, 20)
        key = dataset.items("mcq")[0].answer
        turned = key if right < 10 else other(key)
        answers[0] = json.dumps({"answer": turned, "reason": "r"})
        made.append(make_run(tmp_path / str(number), {"hk_fs_mcq_hk": answers}, f"org/{number}"))
    analysis = item_analysis.analyse(scoring.score_runs(made, dataset), dataset, "hk_fs_mcq_hk")
    name = dataset.items("mcq")[0].id
    (why,) = {r["why"] for r in analysis["review"] if r["id"] == name and "correlation" in r["why"]}
    assert "correlation -0.8" in why


def test_a_run_of_a_few_answers_is_none_of_the_best(tmp_path, dataset):
    made = [
        make_run(tmp_path / str(n), {"hk_fs_mcq_hk": texts(dataset, right, n)}, f"org/{n}")
        for right, n in ((15, 20), (10, 21), (5, 22), (4, 4))
    ]
    scored = scoring.score_runs(made, dataset)
    assert item_analysis.analyse(scored, dataset, "hk_fs_mcq_hk")["best_runs"] == 2
    assert item_analysis.analyse(scored[1:], dataset, "hk_fs_mcq_hk")["best_runs"] == 0


def test_two_runs_are_too_few_for_correlations(scored, dataset):
    analysis = item_analysis.analyse(scored[:2], dataset, "hk_fs_mcq_hk")
    assert analysis["reason"] == "needs at least 3 runs"
    assert analysis["review"] == []
    assert all(item["item_total"] is None for item in analysis["items"])


def test_plots(scored, tmp_path):
    written = plots.draw(scored, tmp_path / "new" / "plots")
    names = {path.name for path in written}
    assert {f"{n}.{e}" for n in ("accuracy", "context", "groups") for e in ("png", "svg")} <= names
    for path in written:
        begins = path.read_bytes()[:200]
        assert begins.startswith(b"\x89PNG") if path.suffix == ".png" else b"<svg" in begins
    svg = (tmp_path / "new" / "plots" / "accuracy.svg").read_text("utf-8")
    assert "org/a" in svg
    assert "without" in svg


def test_plots_of_nothing_and_of_hostile_names(tmp_path, dataset):
    empty = make_run(tmp_path / "one", {"hk_fs_oeq": ["text"]}, "org/one")
    assert plots.draw(scoring.score_runs([empty], dataset), tmp_path / "none") == []
    name = "org/<script>alert(1)</script>[red]\"'&"
    run = make_run(tmp_path / "two", {"hk_fs_mcq_hk": texts(dataset, 2, 4)}, name)
    plots.draw(scoring.score_runs([run], dataset), tmp_path / "plots")
    assert "<script>" not in (tmp_path / "plots" / "accuracy.svg").read_text("utf-8")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can't be made"):
        plots.draw(scoring.score_runs([run], dataset), tmp_path / "file" / "plots")


def rendered(tables) -> str:
    from rich.console import Console

    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in tables:
        console.print(table)
    return console.export_text()


def test_tables_of_hostile_names(tmp_path, dataset):
    name = "org/[red]m[/red]"
    run = make_run(tmp_path / "one", {"hk_fs_mcq_hk": texts(dataset, 2, 4)}, name)
    two = make_run(tmp_path / "two", {"hk_fs_mcq_hk": texts(dataset, 1, 4)}, "org/[/]")
    scored = scoring.score_runs([run, two], dataset)
    text = rendered(report.tables(scored[0].scores))
    assert name in text
    text = rendered(report_runs.comparison_tables(comparing.compare(scored)))
    assert name in text
    assert "org/[/]" in text


def command(*args: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(ROOT / "scripts" / "score.py"), *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


def test_the_command_with_everything(scored, tmp_path):
    folders = [one.run.folder for one in scored]
    plain = ("--metrics", "citations")
    done = command(*folders, *plain, "--items", "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    for text in (
        "accuracy with less without Hong Kong context: +0.00 points",
        "hk_fs_mcq_hk: accuracy",
        "1 to 2",
        "the hardest items over 4 runs",
        "to review again",
        "plots: accuracy.png",
        "unsafe %",
        "accuracy's 95% interval over",
        "citations that exist in the Code",
        "signature: citations_exist|code:2024",
    ):
        assert text in done.stdout, text
    done = command(folders[0], *plain, "--baseline", folders[2], "--json")
    out = json.loads(done.stdout)
    assert out["comparison"]["baseline"] == "org/c"
    assert [scores["model"]["id"] for scores in out["runs"]] == ["org/a", "org/c"]
    done = command(folders[0], folders[0], *plain, "--json")
    assert done.stderr == "note: some__model is named more than once, and counts once\n"
    assert json.loads(done.stdout)["model"]["id"] == "org/a"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--metrics", "blue"), "no metric blue; --metrics takes bleu"),
        (("--baseline", "{run}"), "--baseline needs another run"),
        (("--judge", "nobody"), "no model nobody"),
        (("--plots", "{run}/run.json/x"), "can't be made"),
        (("--metrics", " , "), "says nothing clear"),
        (("--metrics", "none,bleu"), "says nothing clear"),
        (("--bertscore-layers", "6"), "add --metrics bertscore"),
        (("--bertscore-model", ""), "--bertscore-model is empty"),
        (("--metrics", "bertscore", "--bertscore-layers", "0"), "is no layer"),
        (("--judge-id", "x"), "name it with --judge"),
        (("--max-cost", "1"), "name it with --judge"),
        (("--model-id", "org/x"), "are for an --output_path of lm_eval"),
        (("--brief", "--json"), "leave --brief out"),
    ],
)
def test_mistakes_are_one_line(tmp_path, dataset, args, message):
    run = make_run(tmp_path / "one", {"hk_fs_mcq_hk": texts(dataset, 2, 4)}, "org/one")
    done = command(run.folder, *(arg.format(run=run.folder) for arg in args))
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (run.folder / "scores.json").exists()


def test_brief_is_one_table(tmp_path, dataset):
    outputs = {"hk_fs_mcq_hk": texts(dataset, 3, 4), "hk_fs_oeq": ["text"]}
    run = make_run(tmp_path / "one", outputs, "org/one")
    done = command(run.folder, "--metrics", "none", "--brief")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    warned = [line for line in lines if line.startswith("WARNING")]
    assert lines[len(warned)].startswith("org/one · dataset 1.0.0")
    assert sum(line.startswith("┏") for line in lines) == 1
    row = next(line for line in lines if line.startswith("│ hk_fs_mcq_hk"))
    for text in ("4 of 400", "75.00", "30.06 to 95.44", "valid 4"):
        assert text in row
    assert lines[-2].endswith("scores.json")
    assert lines[-1].endswith("items.jsonl")
