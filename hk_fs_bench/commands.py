"""A script's arguments, from the YAML file beside it: names and help, as argparse takes them.

The file holds `arguments`, with an `epilog`; or commands, each with its `help` and arguments. The
default of an `own_path` is a folder of this project, wherever the command is given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no count of at least 1")
    return int(text)


def dollars(text: str) -> float:
    """An amount of USD."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no amount of USD")
    return value


_KINDS: dict[str, Any] = {
    "path": Path,
    "own_path": Path,
    "int": int,
    "float": float,
    "count": count,
    "dollars": dollars,
}


def parse(script: str, functions: Mapping[str, Any]) -> argparse.Namespace:
    """What was given to a script: its arguments, and as `run_command` what does its command.

    Args:
        script: the script's `__file__`; `script.yaml` lies beside `script.py`.
        functions: the script's `globals()`: its docstring, and for each command `do_<command>`.
    """
    path = Path(script).resolve()
    specification = yaml.safe_load(path.with_suffix(".yaml").read_text("utf-8"))
    about = functions["__doc__"].split("\n")[0]
    parser = argparse.ArgumentParser(description=about, epilog=specification.pop("epilog", None))
    if "arguments" in specification:
        _add(parser, specification["arguments"], path)
        return parser.parse_args()
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, arguments in specification.items():
        told = arguments.pop("help")
        one = commands.add_parser(name, help=told, description=told)
        one.set_defaults(run_command=functions[f"do_{name.replace('-', '_')}"])
        _add(one, arguments, path)
    command, given = commands.choices.get(sys.argv[1] if sys.argv[1:] else ""), sys.argv[2:]
    # Files may stand behind options too; argparse allows that to one command alone.
    return command.parse_intermixed_args(given) if command else parser.parse_args()


def _add(parser: argparse.ArgumentParser, arguments: Mapping[str, Any], script: Path) -> None:
    for argument, options in arguments.items():
        typed: dict[str, Any] = {}
        if (kind := options.get("type")) is not None:
            typed["type"] = _KINDS[kind]
        if kind == "own_path" and "default" in options:
            typed["default"] = script.parent.parent / options["default"]
        parser.add_argument(argument, **options | typed)
