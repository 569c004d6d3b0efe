"""How Python workers of Spark treat their memory."""

from __future__ import annotations

import gc

import pyarrow as pa
from pyspark import TaskContext

_prepared = False


def prepare_worker() -> None:
    """What a worker does once; elsewhere nothing happens.

    Spark lets a worker collect garbage after every task. The objects of modules, hundreds of thousands, will never
    be garbage, and to look at each of them takes a tenth of a second: they are passed over. And Arrow's own pool
    gives memory back to the system after every batch, which it then has to be asked for again, page by page.
    """
    global _prepared
    if not _prepared and TaskContext.get() is not None:
        gc.collect()
        gc.freeze()
        pa.set_memory_pool(pa.system_memory_pool())
        _prepared = True
