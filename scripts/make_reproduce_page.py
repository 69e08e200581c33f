"""Write docs/reproduce.md and its figures from the results of a full run.

sfumato reproduce --all --data DIR -o results
python scripts/make_reproduce_page.py results
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from make_figures import plain

from sfumato.papers.experiment import all_experiments

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "figures" / "reproduce"
#: Longer tables are thinned out; the command prints all of their rows.
MOST_ROWS = 16

HEAD = """# The papers again

`sfumato reproduce NAME` runs an experiment of the papers that Sfumato implements: each number beside the published
one, and beside what our best mechanism does in its place. It draws the figure, says what the paper's text claims and
whether that was found, and how far the numbers are from the published ones, and why. `--list` names the experiments,
`--all` runs them, `--quick` takes seconds, `--json` answers for programs, `-o DIR` writes figure, table and JSON of
each.

    sfumato reproduce icml-table1 --data data -o results

Nothing is fetched. `--data DIR`, or the variable `SFUMATO_DATA`, names a folder with data files; what is not there is
stood in for, and the answer says so:

| file in the folder | what it is | where it is published |
|---|---|---|
| `loc-gowalla_totalCheckins.txt` or `.txt.gz` | 6,442,890 check-ins | SNAP (Stanford), data set loc-gowalla |
| `kosarak.dat` or `.dat.gz` | 990,002 sessions of a news portal | FIMI repository, given by F. Bodon |
| `adult.data` | 32,561 people of the 1994 US census | UCI Machine Learning Repository, data set Adult |

Smaller copies are read where these are missing: `gowalla_world_256x256.npz` (all check-ins on a coarse grid, from
DPBench) with `gowalla_us_grid_125x350_subset.npz` (a subset on the grid of the paper),
`gowalla_user_prior_value.parquet`, `kosarak_page_counts.npz` and `adult.parquet`. Where there is nothing at all, a
map of cities, clicks and people are invented.

This page was written by `scripts/make_reproduce_page.py` from a full run on those smaller copies (two shared cores,
seed 0). Where an experiment has fewer draws than the paper, its notes say so. "Found" and "not found" are about what
the paper's text says; (ours) marks what we say. [Errata](errata.md) has the places where the papers are wrong.
"""


def section(name: str, document: dict[str, Any]) -> str:
    """One experiment: figure, table, remarks."""
    rows = document["rows"]
    shown = thinned(rows)
    columns = [column for column in dict.fromkeys(key for row in rows for key in row) if _any(shown, column)]
    lines = [
        f"## {name}: {document['title']}",
        "",
        f"{document['place']}. Numbers: {document['quantity']}.",
        "",
        f"![{document['title']}](figures/reproduce/{name}.svg)",
        "",
        "| " + " | ".join(columns) + " |",
        "|---" * len(columns) + "|",
        *("| " + " | ".join(_text(row.get(column)) for column in columns) + " |" for row in shown),
        "",
    ]
    if len(shown) < len(rows):
        lines += [f"{len(shown)} of {len(rows)} rows.", ""]
    lines += [f"- Data: {each['source']}." for each in document["data"]]
    lines += [f"- Ours: {document['ours_is']}."] if document["ours_is"] else []
    lines += [
        f"- {'Found' if each['holds'] else '**Not found**'}: {_text(each['claim'])}: {_text(each['found'])}."
        for each in document["claims"]
    ]
    lines += [f"- {note}" for note in document["notes"]]
    lines += [f"- It took {document['seconds']:.0f} s.", ""]
    return "\n".join(lines)


def thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every so many rows of a long table; published numbers stay where they are few."""
    step = max(1, -(-len(rows) // MOST_ROWS))
    few = sum(row["published"] is not None for row in rows) < len(rows) / 2
    return [row for place, row in enumerate(rows) if place % step == 0 or (few and row["published"] is not None)]


def small(svg: str) -> str:
    """Places to a hundredth of a point; no indentation, no comments, no names of parts, one font."""
    svg = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", svg)
    svg = re.sub(r"'DejaVu Sans',[^;]*sans-serif", "sans-serif", svg)
    svg = re.sub(r" *<!--.*?-->\n", "", svg)
    svg = re.sub(r' id="(?:matplotlib\.)?[a-z0-9]+_\d+"', "", svg)
    return re.sub(r" *\n *", "\n", svg)


def _any(rows: list[dict[str, Any]], column: str) -> bool:
    return any(row.get(column) is not None for row in rows)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.replace("|", "\\|").replace("*", "\\*") if isinstance(value, str) else f"{value:.4g}"


def main(folder: Path) -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for name in all_experiments():
        if not (folder / f"{name}.json").exists():
            print(f"no result of {name} in {folder}: left out")
            continue
        document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert not document["quick"], name
        parts.append(section(name, document))
        figure = small(plain((folder / f"{name}.svg").read_text(encoding="utf-8")))
        (FIGURES / f"{name}.svg").write_text(figure, encoding="utf-8")
    (DOCS / "reproduce.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
