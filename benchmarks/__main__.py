"""Everything that is measured, in one run."""

from benchmarks import audits, kernels

kernels.main()
audits.main()
