"""Write docs/reproduce.md and its figures from the results of a full run.

python -m papers --all --data DIR -o results
python scripts/make_reproduce_page.py results
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from make_figures import plain

from papers.experiment import all_experiments

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "figures" / "reproduce"
#: Maximum number of rows in a table of the page; the command prints all rows.
MOST_ROWS = 16

HEAD = """# Reproducing the papers

In a checkout, `python -m papers NAME` runs an experiment from a paper that Sfumato implements. The result has:

- each number next to the published one, and next to that of our best mechanism;
- the figure;
- the claims of the paper, and whether the run confirms them;
- notes that explain differences from the published numbers.

| option | meaning |
|---|---|
| `--list` | list the experiments |
| `--all` | run all experiments |
| `--quick` | run small cases that take seconds |
| `--json` | print JSON for programs |
| `-o DIR` | write figure, table and JSON of each experiment to a folder |
| `--data DIR` | read data files from a folder |

    python -m papers icml-table1 --data data -o results

## Data

Nothing is downloaded. `--data DIR`, or the environment variable `SFUMATO_DATA`, names a folder with data files. An
experiment replaces a missing file by a stand-in, and its result says so.

| file in the folder | content | published by |
|---|---|---|
| `loc-gowalla_totalCheckins.txt` or `.txt.gz` | 6,442,890 check-ins | SNAP (Stanford), data set loc-gowalla |
| `kosarak.dat` or `.dat.gz` | 990,002 sessions of a news portal | FIMI repository, provided by F. Bodon |
| `adult.data` | 32,561 people of the 1994 US census | UCI Machine Learning Repository, data set Adult |

If these files are missing, the experiments read smaller copies:

| file | content |
|---|---|
| `gowalla_world_256x256.npz` | all check-ins on a coarse grid, from DPBench |
| `gowalla_us_grid_125x350_subset.npz` | a subset of the check-ins on the grid of the paper |
| `gowalla_user_prior_value.parquet` | 1,000 users with their prior and their value |
| `kosarak_page_counts.npz` | an estimate of the clicks per page |
| `adult.parquet` | the people of Adult |

Without any file, the experiments invent a map of cities, clicks and people.

## How to read this page

`scripts/make_reproduce_page.py` wrote this page from a full run on the smaller copies (two shared cores, seed 0).
"Confirmed" and "not confirmed" refer to claims of the papers; "(ours)" marks our own claims. If an experiment has fewer
draws than the paper, its notes say so. [Errata](errata.md) lists the places where the papers are wrong.
"""


def section(name: str, document: dict[str, Any]) -> str:
    """Return the section of one experiment: figure, table and remarks."""
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
        lines += [f"The table shows {len(shown)} of {len(rows)} rows.", ""]
    lines += [f"- Data: {each['source']}." for each in document["data"]]
    lines += [f"- Ours: {document['ours_is']}."] if document["ours_is"] else []
    lines += [
        f"- {'Confirmed' if each['holds'] else '**Not confirmed**'}: {_text(each['claim'])}. "
        f"Result: {_text(each['found'])}."
        for each in document["claims"]
    ]
    lines += [f"- {note}" for note in document["notes"]]
    lines += [f"- The run took {document['seconds']:.0f} s.", ""]
    return "\n".join(lines)


def thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return evenly spaced rows of a long table, and all rows with published numbers if those are few."""
    step = max(1, -(-len(rows) // MOST_ROWS))
    few = sum(row["published"] is not None for row in rows) < len(rows) / 2
    return [row for place, row in enumerate(rows) if place % step == 0 or (few and row["published"] is not None)]


def small(svg: str) -> str:
    """Shorten an SVG: round coordinates to 0.01 points, and drop indentation, comments, identifiers and fonts."""
    svg = re.sub(r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}", svg)
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
            print(f"skipped {name}: {folder} has no result of it; run python -m papers {name} -o {folder}")
            continue
        document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert not document["quick"], name
        parts.append(section(name, document))
        figure = small(plain((folder / f"{name}.svg").read_text(encoding="utf-8")))
        (FIGURES / f"{name}.svg").write_text(figure, encoding="utf-8")
    (DOCS / "reproduce.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
