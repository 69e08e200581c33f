"""The optimal design: the best mechanism for any policy, and how far from the best it can be.

A policy is a cone, a mechanism a mixture of its rays: Q(y|x) = w_y·v_y(x). Rays are found as they are needed (column
generation), and the result is rounded to an exact table on the private side.
"""
