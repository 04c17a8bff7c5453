"""Releases: an edition's files."""

from hk_fs_bench.manifest import make_manifest, stratified_order, write_edition, write_manifest

__all__ = ["make_manifest", "stratified_order", "write_edition", "write_manifest"]
