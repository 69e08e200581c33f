"""Mechanisms that divide the values into parts and run one mechanism per part."""
