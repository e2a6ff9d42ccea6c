"""Several tables in one plan: a comparison for each, and what all of them come to. PRIVATE.

    tables:
      nltcs: {table: nltcs.parquet, schema: nltcs.yaml}
      adult: {table: adult.parquet, schema: adult.yaml, target: income}
    methods:
      AIM: aim:paper                                  # a label, and a method
      ours: {method: aim, set: {size: 16}}            # with options
      theirs: {program: "python theirs.py {table} {epsilon} {seed} {out}.csv"}
    epsilons: [0.1, 1]
    runs: 5
    metrics: [tvd2, tvd3]

The folder holds one for each table, as a comparison of one table leaves it, and `study.json`, `results.csv`,
`summary.csv`, and for every figure a `.tex` and a `.svg`. `study.json` is a plan too: `hedgerow compare study.json`
makes all of it again, with the same seeds; the digests in it say whether tables and code are the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from hedgerow.compare.grid import Row, compare, views_of, write_summaries
from hedgerow.compare.plan import Plan
from hedgerow.compare.program import words_of
from hedgerow.compare.summary import Summary, latex, summaries, svg
from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.pages.comparison import MetricView
from hedgerow.release.certificate import versions
from hedgerow.release.files import write_private

FORMAT = "hedgerow study 1"
KEYS = ("tables", "methods", "epsilons", "runs", "metrics", "delta", "seed", "unsafe_noise_seed", "against", "limits")
OF_TABLE = ("table", "schema", "target", "public", "ledger", "file")
OF_METHOD = ("method", "program", "set")


@dataclass(frozen=True)
class Study:
    """Plans by the labels of their tables, alike in everything else."""

    plans: Mapping[str, Plan]
    about: Mapping[str, Any]
    """As it was written: plain values."""

    @classmethod
    def of(cls, about: Any) -> Study:
        """From the plain values of a plan, or of the manifest of an earlier one."""
        if isinstance(about, Mapping) and about.get("format") == FORMAT:
            about = about["plan"]
        about = _mapping(about, "a plan", KEYS)
        methods = about.get("methods", {})
        entries = {str(name): name for name in methods} if isinstance(methods, list) else _labelled(methods, "methods")
        named: dict[str, str] = {}
        programs: dict[str, str] = {}
        options: dict[str, dict[str, str]] = {}
        for label, entry in entries.items():
            said = {"method": entry} if isinstance(entry, str) else _mapping(entry, f'the method "{label}"', OF_METHOD)
            if "program" in said:
                words_of(str(said["program"]))
                programs[label] = str(said["program"])
                continue
            named[label] = str(said.get("method", label))
            given: Any = said.get("set") or {}
            options[label] = {str(option): str(value) for option, value in dict(given).items()}
        plans = {
            label: Plan(
                **{"target": None, **_mapping(entry, f'the table "{label}"', OF_TABLE)},
                methods=tuple(named),
                named={label: name for label, name in named.items() if label != name},
                programs=programs,
                options={label: given for label, given in options.items() if given},
                epsilons=tuple(float(each) for each in about.get("epsilons", (1.0,))),
                runs=int(about.get("runs", 3)),
                metrics=tuple(about.get("metrics", ("tvd2", "tvd3"))),
                delta=float(about.get("delta", 1e-9)),
                seed=int(about.get("seed", 0)),
                unsafe_noise_seed=about.get("unsafe_noise_seed"),
                **_mapping(about.get("limits", {}), "limits", ("max_memory", "max_seconds")),
            )
            for label, entry in _labelled(about.get("tables", {}), "tables").items()
        }
        if not plans or not (named or programs):
            raise OptionError("bad-plan", "a plan needs tables and methods.")
        return cls(plans, about)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """From a YAML or JSON file."""
        import yaml

        try:
            return cls.of(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            raise OptionError("bad-plan", f'"{path}" is not a plan that can be read as YAML or JSON.') from None

    @property
    def against(self) -> str:
        """What differences are taken from: the method that the plan names, or its first."""
        plan = next(iter(self.plans.values()))
        return str(self.about.get("against") or [*plan.methods, *plan.programs][0])


@dataclass(frozen=True, eq=False)
class Results:
    """What came of a study. PRIVATE: computed from real rows."""

    study: Study
    rows: list[Row]

    @cached_property
    def metrics(self) -> list[MetricView]:
        """The figures that there are."""
        done = [row for row in self.rows if row["status"] == "done"]
        return views_of(next(iter(self.study.plans.values())), done)

    @cached_property
    def summary(self) -> list[Summary]:
        """Means, intervals and paired differences."""
        return summaries(self.rows, [metric.name for metric in self.metrics], self.study.against)

    def latex(self, metric: str) -> str:
        """A table for a paper."""
        return latex(self.summary, self._metric(metric))

    def svg(self, metric: str) -> str:
        """A figure for a paper."""
        return svg(self.summary, self._metric(metric))

    def _metric(self, name: str) -> MetricView:
        known = {metric.name: metric for metric in self.metrics}
        if name not in known:
            raise OptionError(
                "unknown-metric", f'no figure "{name}"; figures: {listing(known)}.{suggestion(name, known)}'
            )
        return known[name]


def run_study(
    study: Study,
    folder: str | Path,
    *,
    jobs: int = 1,
    retry: bool = False,
    command: tuple[str, ...] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Results:
    """Fill in one comparison after the other, then write what all of them come to."""
    place = Path(folder)
    _begin(study, place)
    rows: list[Row] = []
    for label, plan in study.plans.items():
        told = partial(_tell, say, label)
        found = compare(plan, place / label, jobs=jobs, retry=retry, command=command, say=told)
        rows += [{"table": label, **row} for row in found]
    results = Results(study, rows)
    write_summaries(place, rows, results.metrics, study.against)
    return results


def _begin(study: Study, place: Path) -> None:
    """The manifest, in a folder that is new or holds one."""
    manifest = place / "study.json"
    if place.exists() and not manifest.exists() and (not place.is_dir() or any(place.iterdir())):
        raise OptionError(
            "not-a-comparison",
            f'"{place}" exists already and holds no comparison; it was not touched. '
            "Hint: name another -o/--out folder.",
        )
    judged = {label: plan.judged for label, plan in study.plans.items()}
    about = {"format": FORMAT, "private": True, "plan": study.about, "judged": judged, "versions": versions()}
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    write_private(manifest, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _tell(say: Callable[[str], None], label: str, line: str) -> None:
    say(f"{label}: {line}")


def compare_tables(
    plan: Study | Mapping[str, Any] | str | Path, out: str | Path, *, jobs: int = 1, retry: bool = False
) -> Results:
    """Run methods and programs on tables and compare every result with the real rows. PRIVATE.

    `plan` is a mapping as in a plan's file, or the file; `out` a folder, which is gone on with if it holds the same.
    """
    if not isinstance(plan, Study):
        plan = Study.load(plan) if isinstance(plan, str | Path) else Study.of(plan)
    return run_study(plan, out, jobs=jobs, retry=retry)


def _mapping(value: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise OptionError("bad-plan", f"{what} must be a mapping with the keys {listing(known)}.")
    strange = [str(key) for key in value if key not in known]
    if strange:
        raise OptionError(
            "bad-plan", f'{what} has no key "{strange[0]}"; keys: {listing(known)}.{suggestion(strange[0], known)}'
        )
    return dict(value)


def _labelled(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise OptionError("bad-plan", f"the {what} of a plan must be a mapping from labels.")
    strange = [label for label in value if not re.fullmatch(r"\w[\w .,+:()-]*", str(label))]
    if strange:
        raise OptionError("bad-plan", f'"{strange[0]}" is no label: letters, digits, spaces and .,+:()- are.')
    return {str(label): entry for label, entry in value.items()}
