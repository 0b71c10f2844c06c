"""Where a recipe's files come from: one file a kind of source, each pinned by its SHA-256.

A source leaves verified files in a folder: it installs nothing and keeps no cache, because the store keeps what a step
has fetched; but for downloads that are not finished (downloads.py).
"""

from anfbuild.sources.downloads import Downloads
from anfbuild.sources.registry import KINDS, check, fetch
from anfbuild.sources.wheel import fetch_members

__all__ = ["KINDS", "Downloads", "check", "fetch", "fetch_members"]
