"""Containers that jobs run in: engines, images and runs; and root file systems made of packages, as machines have."""
