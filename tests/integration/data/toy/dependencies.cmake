# The toy has no dependencies; see ortrim.build.declarations.
