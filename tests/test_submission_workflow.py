"""The workflow that checks a submission's pull request: what it may do, and whose code it runs."""

import re

import yaml

from .submissions import ROOT

FOLDER = ROOT / ".github"
TEXT = (FOLDER / "workflows" / "submission.yml").read_text("utf-8")
FLOW = yaml.safe_load(TEXT)
STEPS = FLOW["jobs"]["validate"]["steps"]


def test_it_runs_for_forks_and_can_only_read() -> None:
    # YAML reads the key `on` as true.
    assert set(FLOW[True]) == {"pull_request"}
    assert FLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in FLOW["jobs"]["validate"]
    assert "secrets" not in TEXT
    assert "pull_request_target" not in TEXT


def test_actions_are_pinned_by_their_whole_commit() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)
    checkouts = [s["with"] for s in STEPS if "checkout" in s.get("uses", "")]
    assert all(options["persist-credentials"] is False for options in checkouts)


def test_no_code_of_the_pull_request_runs() -> None:
    for step in STEPS:
        command = step.get("run", "")
        # What strangers choose comes by the environment, never into a shell's own text.
        assert "${{" not in command
        assert not re.search(
            r"(?:python|pip|bash|sh|make)\s[^&|]*candidate/(?!leaderboard)", command
        )
    assert "python base/scripts/leaderboard.py validate" in STEPS[-1]["run"]


def test_the_template_asks_what_the_submission_declares() -> None:
    text = (FOLDER / "PULL_REQUEST_TEMPLATE" / "submission.md").read_text("utf-8")
    for value in ("none_known", "possible", "known"):
        assert f"(`{value}`)" in text
