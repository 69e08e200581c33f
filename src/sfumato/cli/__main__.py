"""Run the command line as ``python -m sfumato.cli``."""

import sys

from sfumato.cli import main

sys.exit(main())
