"""The file of a placement contract, read and written."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from anfbuild.cli.beside import written
from anfbuild.errors import RecipeError
from anfbuild.placement.rows import is_formula, plain, write_cells
from anfbuild.recipe.files import beside, shipped

SUFFIX = ".placement.csv"
UNITS = ("CPU", "GPU")
_MOST_BYTES = 8_000_000
"""Of a contract: far more than any has."""
_REWRITE = "Mend it, or remove it and build with --accept."

Key = tuple[str, str, str]
"""Target, quantization, component."""


@dataclass(frozen=True, order=True)
class Listed:
    """A node that may be off the HTP. `quantization` is the scheme of its component, `main` the only component."""

    target: str
    quantization: str
    component: str
    node: str
    op_type: str
    unit: str
    reason: str
    """Why it is there, for people: it is not compared."""

    @property
    def key(self) -> Key:
        return self.target, self.quantization, self.component

    @property
    def name(self) -> str:
        """The node as results.json calls it: of several components behind the name of its own."""
        return self.node if self.component == "main" else f"{self.component}: {self.node}"


COLUMNS = tuple(field.name for field in fields(Listed))


@dataclass(frozen=True)
class Contract:
    """The contract of a recipe; `rows` is None where there is no file. `path` is where it is written."""

    path: Path
    shown: str
    rows: tuple[Listed, ...] | None


def load(recipe: str, project: Path) -> Contract:
    """The contract of `recipe`: the project's, or that of a recipe that comes with anfbuild.

    Raises RecipeError for a file that is none, with the line.
    """
    path = beside(recipe, SUFFIX, project)
    shown = path.relative_to(project).as_posix()
    found = path
    if not _is_there(path) and not beside(recipe, ".yaml", project).exists():
        found = beside(recipe, SUFFIX, shipped())
    return Contract(path, shown, tuple(_read(found, shown)) if _is_there(found) else None)


def _is_there(path: Path) -> bool:
    """Whether there is anything of that name: a link that leads nowhere is no missing contract."""
    return path.is_symlink() or path.exists()


def save(contract: Contract, keys: Iterable[Key], rows: Iterable[Listed]) -> None:
    """Write the contract with `rows` as all that is listed under `keys`, the others as they are.

    The same rows give the same bytes, in whatever order. Raises StepError where the file cannot be written.
    """
    replaced = set(keys)
    kept = [row for row in contract.rows or () if row.key not in replaced]
    with written(contract.path, "placement contract") as partial:
        write_cells(partial, COLUMNS, map(astuple, sorted([*kept, *rows])))


def _read(path: Path, shown: str) -> Iterator[Listed]:
    first: dict[tuple[str, ...], int] = {}
    for line, cells in _records(_text(path, shown), shown):
        row = _row(cells, f"{shown}:{line}")
        name = (*row.key, row.node)
        if name in first:
            raise _wrong(f"{row.node!r} is listed twice, first in line {first[name]}", f"{shown}:{line}")
        first[name] = line
        yield row


def _text(path: Path, shown: str) -> str:
    if not path.is_file():
        raise _wrong("the placement contract is no file", shown)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _wrong(f"a placement contract of more than {_MOST_BYTES:,} bytes", shown)
        data = path.read_bytes()
    except OSError as error:
        raise _wrong(f"the placement contract cannot be read: {error.strerror or error}", shown) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _wrong("the placement contract is not UTF-8", f"{shown}:{line}") from error


def _records(text: str, shown: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The number of the first line of each row, and its cells by column."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise _wrong(f"the placement contract is no CSV: {error}", f"{shown}:{line}") from error
        if cells is None:
            break
        if columns is None:
            columns = cells
            if sorted(columns) != sorted(COLUMNS):
                raise RecipeError(
                    f"the placement contract has the columns {', '.join(map(repr, columns)) or 'of nothing'}",
                    where=f"{shown}:{line}",
                    choices=COLUMNS,
                    remedy=f"It must have each of these once, and no other. {_REWRITE}",
                )
        elif cells:
            if len(cells) != len(columns):
                raise _wrong(f"{len(cells)} cells, where {len(columns)} belong", f"{shown}:{line}")
            yield line, dict(zip(columns, cells, strict=True))
    if columns is None:
        raise RecipeError(
            "the placement contract is empty", where=shown, choices=COLUMNS, remedy=f"It needs a head. {_REWRITE}"
        )


def _row(cells: Mapping[str, str], where: str) -> Listed:
    for column, cell in cells.items():
        if is_formula(cell):
            raise _wrong(f"{column!r} begins with {cell[0]!r}, which a spreadsheet would run as a formula", where)
        if not cell and column != "reason":
            raise _wrong(f"{column!r} is empty", where)
    if cells["unit"] not in UNITS:
        raise RecipeError(
            f"there is no unit {cells['unit']!r} off the HTP", where=where, choices=UNITS, remedy=_REWRITE
        )
    return Listed(**{column: plain(cell) for column, cell in cells.items()})


def _wrong(what: str, where: str) -> RecipeError:
    return RecipeError(what, where=where, remedy=_REWRITE)
