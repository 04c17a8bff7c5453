"""Make and guard editions of the dataset.

python scripts/dataset.py manifest [FOLDER] [--version X.Y.Z]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hk_fs_bench.errors import run_command

ROOT = Path(__file__).resolve().parent.parent


def manifest(args: argparse.Namespace) -> None:
    """Validate the data files, then write manifest.json and the card from them."""
    from hk_fs_bench import card
    from hk_fs_bench.manifest import write_manifest

    made = write_manifest(args.folder, args.version)
    card.write(args.folder, made, ROOT / "dataset_card")
    print(f"{args.folder}: version {made['version']}, sha256 {made['sha256']}")
    for split, entry in made["splits"].items():
        print(f"  {split}: {entry['items']} items")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("manifest", help=(manifest.__doc__ or "").split("\n")[0])
    one.add_argument("folder", type=Path, nargs="?", default=ROOT / "hf_dataset")
    one.add_argument("--version", help="default: the version that the manifest has")
    one.set_defaults(run=manifest)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    run_command(main)
