"""A word on a terminal when the first use takes long: it compiles the kernels, once on a machine."""

from __future__ import annotations

import sys
import threading
from typing import ClassVar


class Announced:
    """While the kernels are used for the first time in this process, say so if it takes more than a second."""

    first: ClassVar[bool] = True

    def __enter__(self) -> None:
        self.timer = None
        if Announced.first and sys.stderr.isatty():
            self.timer = threading.Timer(
                1.0, print, ("ocelad: compiling, once on this machine ...",), {"file": sys.stderr}
            )
            self.timer.daemon = True
            self.timer.start()

    def __exit__(self, *_: object) -> None:
        Announced.first = False
        if self.timer is not None:
            self.timer.cancel()
