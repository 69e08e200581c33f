"""Everything that is measured, in one run."""

from benchmarks import audits, blocks, kernels

kernels.main()
audits.main()
blocks.main()
