"""Reports of any mechanism: which are valid, and how they are counted."""
