"""Published mechanisms with exact laws: for questions (``benchmarks.questions``) and for repeated collection."""
