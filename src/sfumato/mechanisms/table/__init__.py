"""Tables: any finite matrix of probabilities, sampled by the alias method."""
