"""Settings of Spark sessions for thousands of tiny queries, on a machine that others use too."""

from __future__ import annotations

# The JVM's optimising compiler and parallel garbage collector cost more than they save here, and one partition is
# enough. Telling the JVM the line of every Python call doubles the calls.
SMALL: dict[str, str] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
