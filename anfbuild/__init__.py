"""anfbuild is Make for on-device AI: a recipe in, a verified package for the Hexagon NPU out.

The package is a house of few rooms; `docs/design.md` says what each is for and which may use which.
Nothing heavy is imported here: `anfbuild --help` is used a hundred times a day.
"""

__version__ = "0.1.0"
