"""Settings of a Spark session that matter for `track`."""

from __future__ import annotations

from typing import Any

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

SETTINGS = {
    PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""``SparkSession.builder.config(map=SETTINGS)``: states in RocksDB on local disk, the only store that can be used;
checkpoints of what a batch has changed, not of all; and at most 10,000 rows for Python at once, however long they
are, for Spark measures them all again with each row that it adds."""


def check_settings(spark: Any) -> None:
    """Whether the session has a store for states that can be used: Spark says so late, and in other words."""
    if (found := spark.conf.get(PROVIDER)).endswith("HDFSBackedStateStoreProvider"):
        raise ValueError(
            f"the session must keep states in RocksDB, and {PROVIDER} is {found.rpartition('.')[2]}: "
            "SparkSession.builder.config(map=ocelad.spark.SETTINGS)"
        )
