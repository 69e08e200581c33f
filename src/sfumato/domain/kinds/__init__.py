"""The ways to describe a domain: a range, a list, a product, a grid."""
