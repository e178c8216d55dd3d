"""Which files a query needs, answered while Spark plans it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.catalog.files import FileScope
from penstock.catalog.pruning import Condition, Pruning, keep, prunings
from penstock.model.columns import Column
from penstock.model.files import DataFile, FileGroup
from penstock.partitioning import PartitionSpec
from penstock.predicates import implied_by
from penstock.spark.relation import records


@dataclass(frozen=True)
class Planner:
    """For the files of one group: filters as JSON in, files and their constants out."""

    spark: SparkSession
    scope: FileScope
    specs: Sequence[PartitionSpec]
    group: FileGroup
    columns: Sequence[Column]  # under the names that the filters use
    constants_of: Callable[[DataFile], tuple[object, ...]] = lambda file: ()

    def __call__(self, filters: str) -> str:
        self.scope.check()
        files = self.scope.data_files(self.group, self.keep(filters))
        return records((file.path, file.size, self.constants_of(file)) for file in files)

    def keep(self, filters: str) -> Condition:
        """True for the data files that can hold a row that passes the filters."""
        return keep(self.prunings(filters))

    def prunings(self, filters: str) -> tuple[Pruning, ...]:
        """The reasons that the filters give to leave files out."""
        time_zone = self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        each = [json.dumps(item) for item in json.loads(filters)]
        by_id = {item.id: item for column in self.columns for item in column.walk()}
        implication = implied_by(each, self.columns, time_zone)
        return prunings(implication, self.scope.table_id, self.specs, by_id, self.scope.database.dialect)
