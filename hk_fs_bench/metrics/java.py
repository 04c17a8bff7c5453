"""The two Java programs that pycocoevalcap brings, run so that none hangs or stays behind.

Its own wrappers keep a lock and a pipe: one line break in an answer, a comma locale or a blank in
the install path, and the program waits for ever. Here a program gets all its input at once, has a
deadline, and dies with this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hk_fs_bench.metrics.common import INSTALL, Unavailable

# What the user's own Java settings may say; a locale of theirs would change how numbers are read.
_IGNORED = ("_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_FIXED = ("-Duser.language=en", "-Duser.country=US", "-Dfile.encoding=UTF-8")
_LINUX_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def resource(name: str) -> Path:
    """A file that pycocoevalcap brings; Unavailable without the package."""
    spec = importlib.util.find_spec("pycocoevalcap")
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(root) / name).is_file():
            return path
    raise Unavailable(f"needs pycocoevalcap: {INSTALL}")


def find_java() -> str:
    """The java program; Unavailable where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    found = found or shutil.which("java")
    if found is None:
        raise Unavailable(
            "needs Java 17 or later: install a JRE (Debian: apt install default-jre-headless)"
        )
    return found


class Java:
    """One run of a Java program: started on entering, dead on leaving.

        with Java(folder, files, arguments) as program:
            lines = program.finish(text, deadline=60)

    Args:
        folder: where the program lies.
        files: what it needs from there.
        arguments: of java, after the fixed locale and encoding, with paths relative to `folder`.
    """

    def __init__(self, folder: Path, files: Sequence[str], arguments: Sequence[str]) -> None:
        self._folder, self._files, self._arguments = folder, files, arguments

    def __enter__(self) -> Self:
        java = find_java()
        with contextlib.ExitStack() as stack:
            folder = self._folder.resolve()
            if not _is_plain(folder):
                folder = stack.enter_context(_plain_copy(folder, self._files))
            # Its complaints go to a file, so that a full pipe can't stop it.
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            try:
                self._process = subprocess.Popen(
                    [java, *_FIXED, *self._arguments],
                    cwd=folder,
                    env={k: v for k, v in os.environ.items() if k not in _IGNORED},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    preexec_fn=_die_with_parent if sys.platform == "linux" else None,
                )
            except OSError as error:
                raise Unavailable(f"{java} can't be run: {error.strerror}") from None
            stack.callback(self._end)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def finish(self, text: str, deadline: float) -> list[str]:
        """Give the program all of its input, and take its lines.

        Raises:
            Unavailable: it failed, or was not done after `deadline` seconds; it is then dead.
        """
        try:
            out, _ = self._process.communicate(text.encode(), timeout=deadline)
        except subprocess.TimeoutExpired:
            self._end()
            raise Unavailable(f"Java was not done after {deadline:.0f} s") from None
        if self._process.returncode != 0:
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            raise Unavailable(f"Java failed: {said[0] if said else self._process.returncode}")
        lines = out.decode("utf-8", "replace").split("\n")
        return [line.removesuffix("\r") for line in lines[:-1]]

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_LINUX_DIE_WITH_PARENT, signal.SIGKILL)


def _is_plain(folder: Path) -> bool:
    """Whether a path is the same as a URL; below any other, METEOR does not find its own data."""
    return str(folder).isascii() and not set(str(folder)) & set(" %#?+&")


@contextlib.contextmanager
def _plain_copy(folder: Path, files: Sequence[str]) -> Iterator[Path]:
    """The files under a temporary path that is plain, linked where the file system can."""
    for base in (None, "/tmp", "/var/tmp"):
        try:
            copy = Path(tempfile.mkdtemp(prefix="hk-fs-", dir=base)).resolve()
        except OSError:
            continue
        if _is_plain(copy):
            break
        copy.rmdir()
    else:
        raise Unavailable("needs a temporary folder without blanks in its path: set TMPDIR")
    try:
        for name in files:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                # No symbolic link: Java would look at what it leads to.
                os.link(folder / name, copy / name)
            except OSError:
                shutil.copyfile(folder / name, copy / name)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)
