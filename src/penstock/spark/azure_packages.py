"""Names the packages by which Spark reads Azure: Hadoop's own, without what Spark has and what its old driver needs."""

from __future__ import annotations

from penstock.spark.hadoop import hadoop_version

_PRESENT = (
    "com.microsoft.azure:*",
    "org.apache.hadoop.thirdparty:*",
    "org.apache.httpcomponents:*",
    "org.slf4j:*",
    "commons-logging:*",
    "commons-codec:*",
)
HOW_TO_ADD = (
    "it has no file system for Azure; start it with penstock.session(azure=True), or give yours the packages of "
    "penstock.azure_packages() as spark.jars.packages and spark.jars.excludes"
)


def azure_packages() -> dict[str, str]:
    """Gives the settings by which a Spark session gets what it needs to read Azure.

    Returns:
        `spark.jars.packages` and `spark.jars.excludes`, for the Hadoop that the installed PySpark has.
    """
    packages = f"org.apache.hadoop:hadoop-azure:{hadoop_version()}"
    return {"spark.jars.packages": packages, "spark.jars.excludes": ",".join(_PRESENT)}
