"""A stream into a lake and another one out of it: `python examples/stream.py [FOLDER]`.

Files arrive in a folder; each batch of them is one snapshot of `clicks`, written once however often it is tried. A
second stream reads what `clicks` gets, counts it by page, and keeps the counts in another table.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import penstock


def main(folder: Path) -> None:
    spark = penstock.session()
    with penstock.attach(f"ducklake:sqlite:{folder}/web.sqlite", data_path=f"{folder}/data") as lake:
        clicks = lake.create_table("clicks", "page STRING, at TIMESTAMP", if_not_exists=True)
        counts = lake.create_table("counts", "page STRING, clicks BIGINT", if_not_exists=True)
        arrive(folder / "arrivals")

        # In: `available_now` takes what is there and ends; without a trigger, a stream runs until it is stopped.
        arrivals = spark.readStream.schema("page STRING, at TIMESTAMP").json(str(folder / "arrivals"))
        into = clicks.write_stream(
            arrivals, checkpoint=f"{folder}/into", name="clicks-in", trigger={"availableNow": True}
        )
        into.awaitTermination()

        # Out: the whole count so far, after each batch.
        by_page = clicks.read_stream().groupBy("page").count().toDF("page", "clicks")
        out = counts.write_stream(
            by_page,
            checkpoint=f"{folder}/out",
            name="clicks-out",
            output_mode="complete",
            trigger={"availableNow": True},
        )
        out.awaitTermination()

        counts.read().orderBy("page").show()
        lake.streams().show()  # what the lake remembers of its streams


def arrive(folder: Path) -> None:
    """Some clicks, as lines of JSON in a new file."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"page": page, "at": "2026-11-18T12:00:00Z"} for page in ("home", "home", "shop")]
    number = len(list(folder.iterdir()))
    (folder / f"{number:04}.json").write_text("\n".join(map(json.dumps, lines)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-stream-") as made:
            main(Path(made))
