"""What each lever of a profile brings in bytes: pulled alone, and let go alone, for one spec and one target.

Sizes need no machine at rest and no other run beside them; what the levers do to speed is measured of whole profiles,
by `invoke measure.footprint`.
"""
