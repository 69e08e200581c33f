"""Published mechanisms for means and distribution functions with exact laws, for ``benchmarks.questions``."""
