"""The collector: a service that takes randomized reports, counts each exactly once, and estimates from the counts.

No raw value reaches it: there is no operation that takes one, and this package does not import what could randomize.
"""
