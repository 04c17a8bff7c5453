"""Print the folder of the demo's small model, making it on the first call.

python scripts/small_model.py [CACHE]
"""

import sys
from pathlib import Path

from hk_fs_bench.errors import run_command


def main() -> None:
    from hk_fs_bench.small_model import safetensors_folder

    cache = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".cache")
    print(safetensors_folder(cache))


if __name__ == "__main__":
    run_command(main)
