"""Composes the stages; the only package that knows their order.

load -> prepare -> convert -> reduce (`converted.py`) -> cases -> sources -> plan (`planned.py`) -> build -> package
-> verify -> report (`targets.py`)

The folders are what this order calls, and the commands that go another way: `models` and their `steps`; `packaging`,
`verification`, `history`; `inspection`, `bench`, `engines`, `compatibility` of what is there; `github` and the
`workflow_jobs` that it runs; `pins`.
"""
