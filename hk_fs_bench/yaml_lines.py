"""YAML that remembers its lines, so that a fault in a file can be named by where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from hk_fs_bench.errors import UserError

Place = tuple[str | int, ...]


def read(path: Path) -> tuple[Any, dict[Place, int]]:
    """The content of a YAML file, and the line of every value by its path.

    `on`, `off`, `yes` and `no` are words, as in YAML 1.2.

    Raises:
        UserError: a file that can't be read, is empty, is no YAML, or has a key twice.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no UTF-8 text; save it as UTF-8") from None
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                raise UserError(f"{path} is empty")
            lines = _lines(root, path)
            return loader.construct_document(root), lines
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UserError(f"{path} line {line}: no YAML (a character that no text has)") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" line {mark.line + 1}" if mark else ""
        raise UserError(f"{path}{where}: no YAML ({error.problem or error.context})") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None


def line_of(lines: Mapping[Place, int], place: Sequence[str | int]) -> int:
    """The line of a value, or of the nearest thing that holds it."""
    for end in range(len(place), -1, -1):
        if (line := lines.get(tuple(place[:end]))) is not None:
            return line
    return 1


class _Loader(yaml.SafeLoader):
    """YAML 1.2's booleans, true and false; and a line for a value that is none of its kind, as the
    45th of a month."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            kind = node.tag.rpartition(":")[2]
            raise ConstructorError(None, None, f"no {kind}", node.start_mark) from None


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _word in ("true", "false"):
    _Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(rf"^{_word}$"), [_word[0]])


def _lines(
    node: yaml.Node, path: Path, place: Place = (), around: tuple[yaml.Node, ...] = ()
) -> dict[Place, int]:
    """The line of every value, by its path. A key that stands twice, or is no word, and an alias of
    what it stands in, are errors."""
    lines: dict[Place, int] = {place: node.start_mark.line + 1}
    if any(node is outer for outer in around):
        raise UserError(f"{path} line {lines[place]}: an alias stands inside what it names")
    around = (*around, node)
    if isinstance(node, yaml.MappingNode):
        own: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                shared = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in shared:
                    inherited = _lines(part, path, place, around)
                    lines = {**inherited, **lines}
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise UserError(f"{path} line {line}: a key is one word, not a list or a mapping")
            if key.value in own:
                raise UserError(
                    f"{path} line {line}: `{key.value}` stands in line {own[key.value]} already"
                )
            own[key.value] = line
            lines |= _lines(value, path, (*place, key.value), around) | {(*place, key.value): line}
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines |= _lines(value, path, (*place, index), around)
    return lines
