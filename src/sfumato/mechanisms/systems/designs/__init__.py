"""Cyclic difference families: their construction, choice and sums over their sets."""
