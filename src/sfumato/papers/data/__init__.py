"""Public data sets that the papers used, read from their original files, from smaller copies, or stood in for.

Nothing is fetched. ``sfumato reproduce --data DIR`` and the variable ``SFUMATO_DATA`` name a folder with the files;
``docs/reproduce.md`` says where they are published. What was read is always said, and a stand-in is called one.
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
