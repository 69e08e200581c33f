"""The four kinds of domain: range, list, product and grid."""
