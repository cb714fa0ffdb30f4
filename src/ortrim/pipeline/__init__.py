"""Composes the stages; the only package that knows their order.

load -> prepare -> convert -> reduce (`converted.py`) -> cases -> sources -> plan (`planned.py`) -> build -> package
-> verify -> report (`targets.py`)
"""
