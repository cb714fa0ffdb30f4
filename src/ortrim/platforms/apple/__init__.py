"""All that is Apple's own: build arguments, frameworks, xcframework, gates, phones and simulators."""
