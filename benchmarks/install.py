"""What an installation costs: `python benchmarks/install.py` installs this checkout into a new virtual environment."""

from __future__ import annotations

import sys
import tempfile
from importlib import metadata
from pathlib import Path

from project import command, table

CHECKOUT = Path(__file__).resolve().parents[1]

TOOLS = ("pip", "setuptools", "wheel")
"""What the environment itself brings."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        command([sys.executable, "-m", "venv", str(root / "venv")], root)
        (python,) = [*root.glob("venv/bin/python"), *root.glob("venv/Scripts/python.exe")]
        cost = command([str(python), "-m", "pip", "install", "--disable-pip-version-check", str(CHECKOUT)], root)
        (site,) = [*root.glob("venv/lib/python*/site-packages"), *root.glob("venv/Lib/site-packages")]
        names = {distribution.name.lower() for distribution in metadata.distributions(path=[str(site)])}
        packages = sorted(names - set(TOOLS))
        size = sum(
            path.stat().st_size
            for path in site.rglob("*")
            if path.is_file() and path.relative_to(site).parts[0].split("-")[0] not in (*TOOLS, "_distutils_hack")
        )
    print(
        table(
            ["pip install .", "", "target"],
            [
                ["packages, anfbuild included", f"**{len(packages)}**", "30"],
                ["site-packages (MB)", f"**{size / 1e6:.0f}**", "700"],
                ["seconds, by what is in pip's cache", f"{cost.seconds:.0f}", ""],
            ],
        )
    )
    print(f"Packages: {', '.join(packages)}.")


if __name__ == "__main__":
    main()
