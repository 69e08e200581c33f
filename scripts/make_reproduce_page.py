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
#: Maximum rows of a table; longer tables show every n-th row, and the command prints all of them.
MOST_ROWS = 16

HEAD = """# Results of the papers

`sfumato reproduce NAME` repeats an experiment of the papers that Sfumato implements. It shows each number next to the
published one, and next to the number of Sfumato's best mechanism for the same task. For each claim in the text of a
paper, it states whether the experiment confirms it. It also states how far the numbers are from the published ones,
and why.

    sfumato reproduce icml-table1 --data data -o results

| Option | Meaning |
|---|---|
| `--list` | List the experiments. |
| `--all` | Run all experiments. |
| `--quick` | Run for seconds only. |
| `--json` | Print the result for programs. |
| `-o DIR` | Write figure, table and JSON of each experiment to this folder. |
| `--data DIR` | Folder with data files. The variable `SFUMATO_DATA` has the same effect. |

The command downloads nothing. It replaces a missing file by a stand-in, and the output says so:

| File in the folder | Content | Source |
|---|---|---|
| `loc-gowalla_totalCheckins.txt` or `.txt.gz` | 6,442,890 check-ins | SNAP (Stanford), data set loc-gowalla |
| `kosarak.dat` or `.dat.gz` | 990,002 sessions of a news portal | FIMI repository, provided by F. Bodon |
| `adult.data` | 32,561 people of the 1994 US census | UCI Machine Learning Repository, data set Adult |

If these files are missing, the command reads smaller copies:

- `gowalla_world_256x256.npz`: all check-ins on a coarse grid, from DPBench;
- `gowalla_us_grid_125x350_subset.npz`: a subset on the grid of the paper;
- `gowalla_user_prior_value.parquet`, `kosarak_page_counts.npz` and `adult.parquet`.

If the folder holds none of these files, the command invents a map of cities, clicks and people.

`scripts/make_reproduce_page.py` wrote this page from a full run on those smaller copies (two shared cores, seed 0).
The notes of an experiment say where it has fewer draws than the paper. "Claim" refers to the text of the paper;
"(ours)" marks claims of this project. [Errata](errata.md) lists the mistakes in the papers.
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
        lines += [f"{len(shown)} of {len(rows)} rows.", ""]
    lines += [f"- Data: {each['source']}." for each in document["data"]]
    lines += [f"- Ours: {document['ours_is']}."] if document["ours_is"] else []
    lines += [f"- {note}" for note in document["notes"]]
    lines += [f"- Time: {document['seconds']:.0f} s.", ""]
    if document["claims"]:
        lines += ["| Claim | Found | Result |", "|---|---|---|"]
        lines += [
            f"| {_text(each['claim'])} | {'yes' if each['holds'] else '**no**'} | {_text(each['found'])} |"
            for each in document["claims"]
        ]
        lines.append("")
    return "\n".join(lines)


def thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every n-th row of a long table, and all rows with published numbers if these are few."""
    step = max(1, -(-len(rows) // MOST_ROWS))
    few = sum(row["published"] is not None for row in rows) < len(rows) / 2
    return [row for place, row in enumerate(rows) if place % step == 0 or (few and row["published"] is not None)]


def small(svg: str) -> str:
    """Return a smaller SVG: coordinates in hundredths of a point, one font, no indentation, comments or ids."""
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
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
            print(f"{name}: {folder} holds no result; run 'sfumato reproduce {name} -o {folder}'")
            continue
        document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert not document["quick"], name
        parts.append(section(name, document))
        figure = small(plain((folder / f"{name}.svg").read_text(encoding="utf-8")))
        (FIGURES / f"{name}.svg").write_text(figure, encoding="utf-8")
    (DOCS / "reproduce.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
