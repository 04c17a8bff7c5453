"""The small real model behind llama.cpp's own OpenAI-compatible server, as a process.

Run as a program it prints its address and serves until its standard input closes. One thread: two
of llama.cpp's collapse on a machine that has anything else to do.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def llama_server() -> Iterator[str]:
    """The base URL of a server that ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.llama_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = next((s for line in process.stdout if (s := line.strip()).startswith("http")), "")
        assert address, "the server did not start"
        yield f"{address}/v1"
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    import xllamacpp

    from hk_fs_bench import small_model

    settings = xllamacpp.CommonParams()
    settings.model.path = str(small_model.gguf_file())
    settings.model_alias = {"smollm2"}
    settings.n_ctx = 2048
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    # With a cache the numbers depend on what was asked before.
    settings.cache_prompt = False
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
