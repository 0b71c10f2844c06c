"""The version matrix: the combination of runtime, compiler and SDK that a recipe was verified with.

Parts that do not match convert without complaint and fail at load, so that `check` runs before every build.
"""

from anfbuild.compat.versions import Part, check

__all__ = ["Part", "check"]
