"""Report formats: how the reports of a mechanism are encoded, validated and counted.

This package has the two general formats, indices and bitmaps. The format of a single family is in the family's folder.
"""
