"""The reference case: an engineer's figures of a segmentation model, those fitted to them, and one that was not.

python benchmarks/reference_case.py
"""

from __future__ import annotations

from anfbuild.simulator import reference


def main() -> None:
    """Print the table."""
    print(f"{'what':<48}{'said':>14}{'ours':>12}  kind")
    for unit in reference.UNITS:
        print(f"{unit.name + ', ms':<48}{unit.said_ms:>14.0f}{unit.ms:>12.1f}  fitted")
        print(f"{unit.name + ', W':<48}{unit.said_w:>14.1f}{unit.watts:>12.2f}  fitted")
        print(f"{unit.name + ', mJ a frame':<48}{unit.said_w * unit.said_ms:>14.1f}{unit.energy.total:>12.1f}  fitted")
    htp = next(unit for unit in reference.UNITS if unit.name == "HTP")
    slower = (reference.burst_clock() - 1) * 100
    burst = htp.heat(clock=reference.burst_clock()).throttle_s
    print(f"{'sustained slower than burst, %':<48}{'5 to 8':>14}{slower:>12.1f}  fitted")
    print(f"{'burst is slowed down after, minutes':<48}{'5 to 10':>14}{_minutes(burst):>12}  fitted")
    saved = reference.transfer_ms(zero_copy=False)
    print(f"{'zero copy saves, ms of a frame':<48}{'12 -> 9':>14}{saved:>12.1f}  fitted")
    for unit in reference.UNITS:
        said = {"CPU": "before 5", "HTP": "not by 5"}.get(unit.name, "-")
        kind = {"CPU": "not in the fit", "HTP": "fitted"}.get(unit.name, "predicted")
        found = _minutes(unit.heat().throttle_s)
        print(f"{unit.name + ' is slowed down after, minutes':<48}{said:>14}{found:>12}  {kind}")


def _minutes(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds / 60:.1f}"


if __name__ == "__main__":
    main()
