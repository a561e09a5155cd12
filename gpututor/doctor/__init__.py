"""Says why there is no GPU: facts in, ranked findings out.

`collect` looks at the machine, `diagnose` thinks, `report` shows both. No module here imports
PyTorch: a small addition on the GPU runs in a process of its own, so that a PyTorch that is
missing, broken or hanging is a finding, and never a traceback.
"""

from __future__ import annotations

from .collect import collect
from .diagnose import diagnose
from .facts import Facts, FactsError
from .finding import Finding
from .recorded import Recorded, machines
from .report import Report, class_table, report

__all__ = [
    "Facts",
    "FactsError",
    "Finding",
    "Recorded",
    "Report",
    "class_table",
    "collect",
    "diagnose",
    "machines",
    "report",
]
