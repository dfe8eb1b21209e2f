"""What a workload found: as JSON, and as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reach:
    """What a ratio must be."""

    ratio: float | None
    sign: str
    """`>=` or `<=`."""
    bound: float

    @property
    def met(self) -> bool:
        if self.ratio is None:
            return False
        return self.ratio >= self.bound if self.sign == ">=" else self.ratio <= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"


def at_least(bound: float, ratio: float | None) -> Reach:
    return Reach(ratio, ">=", bound)


def at_most(bound: float, ratio: float | None) -> Reach:
    return Reach(ratio, "<=", bound)


@dataclass(kw_only=True)
class Report:
    workload: str
    parameters: dict[str, Any]
    figures: dict[str, Any]
    floors: dict[str, Any]
    reaches: Mapping[str, Reach]
    verdict: Mapping[str, int] = field(default_factory=dict)
    """early, lost and twice; empty where no job runs."""

    @property
    def met(self) -> bool:
        return all(reach.met for reach in self.reaches.values())

    @property
    def is_sound(self) -> bool:
        return not self.verdict.get("early") and not self.verdict.get("lost")

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "workload": self.workload,
            "parameters": self.parameters,
            "figures": {name: _rounded(value) for name, value in self.figures.items()}
            | {k: v for k, v in self.verdict.items() if k == "twice"},
            "floors": self.floors,
            "ratio": {name: _rounded(reach.ratio) for name, reach in self.reaches.items()},
            "reach": {name: str(reach) for name, reach in self.reaches.items()},
            "met": self.met,
        }
        return found | {k: v for k, v in self.verdict.items() if k != "twice"}

    def lines(self) -> list[str]:
        """Of the table."""
        lines = [f"{self.workload:<32} met {_yes(self.met)}"]
        for name, reach in self.reaches.items():
            lines.append(
                f"  ratio of {name:<21} {_shown(reach.ratio):>14}  reach {reach!s:>8}  met {_yes(reach.met)}"
            )
        figures = {name: value for name, value in self.figures.items() if not isinstance(value, list | dict)}
        lines += [f"    {name:<28} {_shown(value):>14}" for name, value in figures.items()]
        for name, floor in self.floors.items():
            lines.append(f"    floor: {name:<21} {_shown(floor['value']):>14}  {floor['unit']}")
        return lines + [f"    {name:<28} {value:>14,}" for name, value in self.verdict.items()]


def summary(reports: Iterable[Report]) -> list[str]:
    """One line per reach of all of them."""
    lines = [f"{'workload':<12} {'ratio of':<22} {'figure':>12} {'ratio':>8} {'reach':>8}  met"]
    for report in reports:
        for name, reach in report.reaches.items():
            lines.append(
                f"{report.workload:<12} {name:<22} {_shown(report.figures.get(name)):>12} {_shown(reach.ratio):>8} "
                f"{reach!s:>8}  {_yes(reach.met)}"
            )
    return lines


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _yes(met: bool) -> str:
    return "yes" if met else "no"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "not measured" if value is None else str(value)
