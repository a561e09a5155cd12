"""See a GPU's memory: what is in it, what each byte is for, and who holds it.

All of it asks PyTorch's public functions, so that it works on a real GPU and a simulated one.
"""

from __future__ import annotations

from .account import Account, account
from .blocks import map
from .leaks import Leaks, free_notebook, holders, leaks
from .limit import limit
from .message import Message, read_message
from .numbers import Numbers, numbers, peak
from .watch import Watch, watch

__all__ = [
    "Account",
    "Leaks",
    "Message",
    "Numbers",
    "Watch",
    "account",
    "free_notebook",
    "holders",
    "leaks",
    "limit",
    "map",
    "numbers",
    "peak",
    "read_message",
    "watch",
]
