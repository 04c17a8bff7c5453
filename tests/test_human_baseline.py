"""The practitioners' baseline on the board: what is taken, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import mcq_baseline
from hk_fs_bench.items import Dataset
from hk_fs_bench.leaderboard import human_baseline, site, studies
from tests.boards import board
from tests.sites import ENTRIES
from tests.test_human_mcq import result
from tests.test_leaderboard_site import ROOT, read, text_of

SAID: dict[str, list[bool | None]] = {
    "closed": [True, False, False, True, False, False],
    "open": [True, True, True, True, False, None],
}


def write(folder: Path, dataset: Dataset, *said: dict[str, list[bool | None]]) -> Path:
    """The baseline of some participants, as `import --mcq` makes it, in a folder of studies."""
    folder.mkdir(exist_ok=True)
    paths = []
    for n, one in enumerate(said):
        paths.append(folder.parent / f"p{n}.json")
        paths[-1].write_text(json.dumps(result(dataset, one, f"p{n}")), "utf-8")
    mcq_baseline.write_baseline(folder.parent, paths, dataset)
    return Path(shutil.copy(folder.parent / "baseline.json", folder / studies.BASELINE))


def page(content: dict[str, Any], dataset: Dataset, folder: Path) -> str:
    site.build(content, dataset, folder)
    text = text_of(read(folder, "index.html").split('<h2 id="practitioners">')[1])
    return text.split("The paper's own results")[0]


def test_nobody_has_no_figures(tmp_path: Path, dataset: Dataset) -> None:
    assert human_baseline.read(tmp_path / "studies") is None
    write(tmp_path / "studies", dataset)
    assert human_baseline.read(tmp_path / "studies") is None
    said = page(board(dataset, ENTRIES[2:3], 3), dataset, tmp_path / "site")
    assert "Practitioners, closed and open book Nobody has done this yet." in said
    assert "scripts/human_eval.py forms --mcq" in said
    assert "Accuracy" not in said


def test_the_files_figures_and_no_others(tmp_path: Path, dataset: Dataset) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    path = write(tmp_path / "studies", dataset, SAID, SAID)
    assert studies.read(path.parent) == {}
    found = human_baseline.read(path.parent)
    assert found is not None
    held = json.loads(path.read_text("utf-8"))
    assert found["signature"] == held["signature"]
    for condition, value, n in (("closed", 1 / 3, 6), ("open", 4 / 5, 5)):
        own = found["conditions"][condition]
        assert own["participants"] == 2
        assert own["accuracy"]["value"] == pytest.approx(value)
        assert own["accuracy"]["n"] == n
        assert own["accuracy"].items() <= held["conditions"][condition]["accuracy"].items()
    content = board(dataset, ENTRIES[2:3], 3) | {"human_baseline": found}
    schema = json.loads((ROOT / "leaderboard/schema/leaderboard.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(json.dumps(content)), schema)
    said = page(content, dataset, tmp_path / "site")
    assert "Closed book33.33" in said
    assert "Open book80.00" in said
    assert "never ranked" in said
    assert held["signature"] in said
    assert "Nobody" not in said


def test_a_condition_that_nobody_answered_says_so(tmp_path: Path, dataset: Dataset) -> None:
    path = write(tmp_path / "studies", dataset, {"closed": SAID["closed"]})
    found = human_baseline.read(path.parent)
    content = board(dataset, ENTRIES[2:3], 3) | {"human_baseline": found}
    said = page(content, dataset, tmp_path / "site")
    assert "Closed book33.33" in said
    assert "Open book–no practitioner has answered yet00" in said


Change = Callable[[dict[str, Any]], Any]


def closed(**changes: Any) -> Change:
    return lambda held: held["conditions"]["closed"]["accuracy"].update(changes)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda held: held.update(format=2), "format"),
        (lambda held: held.pop("signature"), "`signature` is missing"),
        (lambda held: held["conditions"].pop("open"), "`conditions.open` is missing"),
        (lambda held: held["conditions"]["open"].update(participants=0), "do not agree"),
        (lambda held: held["conditions"]["open"].update(participants=True), "participants"),
        (closed(value=33.3), "accuracy.value"),
        (closed(value="0.3"), "accuracy.value"),
        (closed(value=None), "a reason"),
        (closed(n=0), "n above 0"),
        (closed(n=10**20), "n"),
        (closed(unit="people"), "unit"),
        (closed(ci95=[0.4]), "ci95"),
        (closed(ci95=[0.9, 0.1]), "wrong way round"),
        (closed(interval=None), "says its interval"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(
    tmp_path: Path, dataset: Dataset, change: Change, says: str
) -> None:
    path = write(tmp_path / "studies", dataset, SAID)
    held = json.loads(path.read_text("utf-8"))
    change(held)
    path.write_text(json.dumps(held), "utf-8")
    refused(path, says)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "no JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "dictionary"),
        (b'{"format":NaN}', "finite"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, raw: bytes, says: str) -> None:
    (tmp_path / "studies").mkdir()
    path = tmp_path / "studies" / studies.BASELINE
    path.write_bytes(raw)
    refused(path, says)


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "studies" / studies.BASELINE).mkdir(parents=True)
    refused(tmp_path / "studies" / studies.BASELINE, "can't be read: Is a directory")


def refused(path: Path, says: str) -> None:
    with pytest.raises(UserError) as caught:
        human_baseline.read(path.parent)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert says in said
    assert "\n" not in said
