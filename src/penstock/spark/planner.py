"""Which files a query needs, answered while Spark plans it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.catalog.files import FileScope
from penstock.catalog.pruning import Pruning, keep, prunings
from penstock.model.columns import Column
from penstock.model.files import DataFile, FileGroup
from penstock.partitioning import PartitionSpec
from penstock.predicates import implied_by
from penstock.spark.mapped import MappedReading
from penstock.spark.relation import records


@dataclass(frozen=True)
class Planner:
    """For the files of one group: filters as JSON in, files and their constants out."""

    spark: SparkSession
    scope: FileScope
    specs: Sequence[PartitionSpec]
    group: FileGroup
    columns: Sequence[Column]  # under the names that the filters use
    numbered: bool = False
    mapped: MappedReading | None = None

    def __call__(self, filters: str) -> str:
        self.scope.check()
        files = self.scope.data_files(self.group, keep(self.prunings(filters)))
        return records((file.path, file.size, self._constants(file)) for file in files)

    def prunings(self, filters: str) -> tuple[Pruning, ...]:
        """The reasons that the filters give to leave files out."""
        time_zone = self.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        each = [json.dumps(item) for item in json.loads(filters)]
        by_id = {item.id: item for column in self.columns for item in column.walk()}
        implication = implied_by(each, self.columns, time_zone)
        return prunings(implication, self.scope.table_id, self.specs, by_id, self.scope.database.dialect)

    def _constants(self, file: DataFile) -> tuple[object, ...]:
        numbers = (file.id, file.row_id_start) if self.numbered else ()
        return (*numbers, *self.mapped.constants_of(file.path)) if self.mapped else numbers
