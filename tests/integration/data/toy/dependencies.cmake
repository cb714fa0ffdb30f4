# The toy has no dependencies; see ortrim.sources.sources.
