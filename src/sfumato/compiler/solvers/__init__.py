"""The solvers behind ``optimal``: the best mechanism for any policy, with a bound on every mechanism.

A policy is a cone, and a mechanism is a mixture of its rays: Q(y|x) = w_y·v_y(x). The search generates rays as it needs
them (column generation). The result is rounded to an exact table in the direction of more privacy.
"""
