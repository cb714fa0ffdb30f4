"""Composes the stages; the only package that knows their order.

load -> prepare -> convert -> reduce -> sources -> plan (`planned.py`) -> build -> package -> verify -> report
(`targets.py`)
"""
