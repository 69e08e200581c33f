"""Report formats: how the reports of a mechanism are written, checked and counted.

The two general formats are here, indices and bitmaps. A format of one family is in the folder of the family.
"""
