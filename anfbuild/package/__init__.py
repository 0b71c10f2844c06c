"""The package: one deterministic archive NAME.anf that carries a built model to where it runs.

A STORED zip that any tool opens, with a manifest that holds the digest of every member. Written the same, byte for
byte, on any host; read strictly, so that a damaged archive never reaches a device. Nothing heavy is imported.
"""

from anfbuild.package.archive import Package, Written, join, read, write
from anfbuild.package.documents import canonical, check, load_schema
from anfbuild.package.manifest import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION", "Package", "Written", "canonical", "check", "join", "load_schema", "read", "write"]
