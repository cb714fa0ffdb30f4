"""The stages in their order: plan, build, package, verify."""
