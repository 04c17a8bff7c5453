"""Print the folder of the demo's small model, making it on the first call."""

import argparse
from pathlib import Path

from hk_fs_bench.errors import run_command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path, nargs="?", default=Path(".cache"))
    args = parser.parse_args()
    from hk_fs_bench.small_model import safetensors_folder

    print(safetensors_folder(args.cache))


if __name__ == "__main__":
    run_command(main)
