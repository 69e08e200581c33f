"""One module an experiment; those with an underscore in front are what several share."""
