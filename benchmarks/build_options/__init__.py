"""What each build option of a profile brings in bytes: on alone, and off alone, for one spec and one target.

Sizes need no machine at rest and no other run beside them; what the build options do to speed is measured of whole
profiles, by `invoke measure.footprint`.
"""
