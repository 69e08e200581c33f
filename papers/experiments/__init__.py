"""One module per experiment; modules with a leading underscore are shared by several."""
