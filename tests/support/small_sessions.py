"""Settings of Spark sessions for thousands of tiny queries, on a machine that others use too."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from support import azure_server, effort, s3_server

# The JVM's optimising compiler and parallel garbage collector cost more than they save here; without the former the JVM
# keeps room for less code than Spark has, and would sweep and compile again. One partition is enough. Telling the JVM
# the line of every Python call doubles the calls.
_SMALL_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m -XX:NewSize=256m"
)
SMALL = {
    "spark.driver.extraJavaOptions": _SMALL_JVM,
    "spark.executor.extraJavaOptions": _SMALL_JVM,
    "spark.sql.shuffle.partitions": "1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# What users do not have, so that `--full` has it neither: workers that need not import anything, and small pages of
# memory. Spark takes one of 64 MB for each operator and task, also for one row.
_QUICK = {"spark.python.daemon.module": "support.warm_workers", "spark.buffer.pageSize": "1m"}
# Of a session with executors of their own: few bytes of rows may come to the driver, one way or the other.
CLUSTERED = {"spark.driver.maxResultSize": "1m", "spark.sql.autoBroadcastJoinThreshold": "100k"}
# To plan a query in stages and to compile it takes longer than to run it on ten rows.
INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


# PySpark asks for them with every column and every job, by these names, and the JVM then looks for the short ones in a
# dozen packages of 300 JARs.
_CLASSES = {
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
    "PythonRDD": "org.apache.spark.api.python.PythonRDD",
    "SerDeUtil": "org.apache.spark.api.python.SerDeUtil",
    "SimplePythonFunction": "org.apache.spark.api.python.SimplePythonFunction",
    "PythonSQLUtils": "org.apache.spark.sql.api.python.PythonSQLUtils",
    "functions": "org.apache.spark.sql.functions",
    "org.apache.spark.sql.functions": "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession": "org.apache.spark.sql.classic.SparkSession",
}
_METHODS = (("functions", "col"), ("functions", "lit"), ("PythonUtils", "toSeq"))


def shared_settings() -> dict[str, str]:
    """Of the session that the tests share."""
    return SMALL | ({} if effort.is_full() else _QUICK) | {"spark.jars": ",".join(_jars())}


def cluster() -> str:
    """A master with executors that are processes of their own: one with two cores, or two of them with `--full`."""
    return "local-cluster[2,1,1024]" if effort.is_full() else "local-cluster[1,2,1024]"


def name_classes(spark: SparkSession) -> None:
    """Keep the classes and methods that PySpark asks the JVM for most, as attributes of what it asks."""
    for name, full_name in _CLASSES.items():
        setattr(spark._jvm, name, getattr(spark._jvm, full_name))
    for class_name, name in _METHODS:
        found = getattr(spark._jvm, class_name)
        setattr(found, name, getattr(found, name))


_interpreted: set[SparkSession] = set()


def interpret(spark: SparkSession, interpreted: bool) -> None:
    """Run the session's queries as they are, or planned in stages and compiled, as users' sessions do."""
    if interpreted == (spark in _interpreted):
        return
    (_interpreted.add if interpreted else _interpreted.remove)(spark)
    for name, value in INTERPRETED.items():
        if interpreted:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)


def _jars() -> list[str]:
    """What Spark reads stores with: some of it, two of them need."""
    return list({os.path.basename(jar): jar for jar in (*s3_server.jars(), *azure_server.jars())}.values())
