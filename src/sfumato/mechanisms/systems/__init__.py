"""Set systems: for each output of a mixture, the set of values for which it is likelier."""
