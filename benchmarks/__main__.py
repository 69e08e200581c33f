"""Everything that is measured, in one run."""

from benchmarks import audits, blocks, kernels, local_priors, peers, scaling

peers.main()
scaling.main()
kernels.main()
audits.main()
blocks.main()
local_priors.main()
