"""Public data sets of the papers, from the original files, from smaller copies, or from stand-ins.

Nothing is downloaded. ``sfumato reproduce --data DIR`` and the environment variable ``SFUMATO_DATA`` name a folder with
the files; ``docs/reproduce.md`` states where they are published. Results always state the source of the data, and mark
stand-ins.
"""

from sfumato.papers.data.adult import census_column, census_table
from sfumato.papers.data.folder import Loaded, data_folder
from sfumato.papers.data.gowalla import Users, district_users, us_grid
from sfumato.papers.data.kosarak import page_clicks
from sfumato.papers.data.seeded import SeededNumbers

__all__ = [
    "Loaded",
    "SeededNumbers",
    "Users",
    "census_column",
    "census_table",
    "data_folder",
    "district_users",
    "page_clicks",
    "us_grid",
]
