"""API keys: found in the environment or a `.env` file, and kept out of all that is written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from hk_fs_bench.errors import UserError

if TYPE_CHECKING:
    from hk_fs_bench.api_models import Provider

# What servers without accounts are given; too short or too common to be looked for in texts.
NO_KEY = "none"
SHORTEST = 8
HIDDEN = "[key]"


def find_key(provider: Provider, folder: Path | None = None) -> str | None:
    """The key of a provider: from the environment, else from `.env` in the working directory.

    Raises:
        UserError: a `.env` that can't be read, or a key that no header can carry.
    """
    key = os.environ.get(provider.key)
    path = (folder or Path()) / ".env"
    if not key and path.is_file():
        from dotenv import dotenv_values

        try:
            key = dotenv_values(path, interpolate=False).get(provider.key)
        except (OSError, UnicodeDecodeError):
            raise UserError(f"{path} can't be read; it holds lines NAME=value in UTF-8") from None
    key = (key or "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise UserError(
            f"{provider.key} holds a blank or a character that no key has; copy it again"
        )
    return key or None


def hide(text: str, keys: Iterable[str]) -> str:
    """The text without any of the keys, as they are or quoted for an address, whole or, at the
    end of a text that was cut off, in part."""
    for key in keys:
        for form in {key, quote(key, safe="")}:
            if len(key) < SHORTEST:
                continue
            text = text.replace(form, HIDDEN)
            for length in range(len(form) - 1, SHORTEST - 1, -1):
                if text.endswith(form[:length]):
                    text = text[:-length] + HIDDEN
                    break
    return text
