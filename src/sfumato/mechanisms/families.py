"""All families of mechanisms, one import per family, in the order in which ``plan`` compares their candidates.

This is the only list of mechanisms. Every import brings the classes of a family and its entry for the registry.
"""

from __future__ import annotations

from sfumato.mechanisms.registry import Family, add_family

# isort: off
from sfumato.mechanisms.systems.singletons import *
from sfumato.mechanisms.unary import *
from sfumato.mechanisms.systems.subsets import *
from sfumato.mechanisms.systems.hadamard_rows import *
from sfumato.mechanisms.systems.shifts import *
from sfumato.mechanisms.mean import *
from sfumato.mechanisms.waves import *
from sfumato.mechanisms.table import *
from sfumato.mechanisms.parts import *
from sfumato.mechanisms.high_low_mixed import *
from sfumato.mechanisms.nested_cyclic import *
from sfumato.mechanisms.composed_subsets import *
from sfumato.mechanisms.product import *
from sfumato.mechanisms.systems.buckets import *
from sfumato.mechanisms.memoized import *
from sfumato.mechanisms.sampled_parts import *
# isort: on

for _family in [value for value in vars().values() if isinstance(value, Family)]:
    add_family(_family)
