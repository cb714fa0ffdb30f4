"""What ortrim builds from and with, by version and digest; an entry without a digest is refused when loaded."""
