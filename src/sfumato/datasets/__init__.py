"""Public data sets of the papers, from the original files, from smaller copies, or from stand-ins.

Nothing is downloaded. A path or the environment variable ``SFUMATO_DATA`` names a folder with the files;
``docs/reproduce.md`` states where they are published. Results always state the source of the data, and mark stand-ins.
"""

from sfumato.datasets.adult import census_column, census_table
from sfumato.datasets.folder import Loaded, data_folder
from sfumato.datasets.gowalla import Users, district_users, us_grid
from sfumato.datasets.kosarak import page_clicks
from sfumato.datasets.seeded import SeededNumbers

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
