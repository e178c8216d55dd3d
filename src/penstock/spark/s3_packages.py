"""Names the packages by which Spark reads S3: Hadoop's own, with the five parts of AWS's SDK that it uses.

Hadoop asks for the whole SDK, in one JAR of 686 MB; these are 14 MB.
"""

from __future__ import annotations

from penstock.errors import UnsupportedError
from penstock.spark.hadoop import hadoop_version

# Hadoop's version, with those of the SDK and of the accelerator that it is made for.
_VERSIONS = {"3.4.2": ("2.29.52", "1.2.1"), "3.5.0": ("2.35.4", "1.3.1")}
_SDK = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
# Spark has them.
_PRESENT = (
    "software.amazon.awssdk:bundle",
    "io.netty:*",
    "org.slf4j:*",
    "commons-logging:*",
    "commons-codec:*",
    "org.apache.httpcomponents:*",
)
HOW_TO_ADD = (
    "it has no file system for S3; start it with penstock.session(s3=True), or give yours the packages of "
    "penstock.s3_packages() as spark.jars.packages and spark.jars.excludes"
)


def s3_packages() -> dict[str, str]:
    """Gives the settings by which a Spark session gets what it needs to read S3.

    Returns:
        `spark.jars.packages` and `spark.jars.excludes`, for the Hadoop that the installed PySpark has.

    Raises:
        UnsupportedError: That Hadoop is of a version that Penstock does not know.
    """
    hadoop = hadoop_version()
    if hadoop not in _VERSIONS:
        raise UnsupportedError(
            f"Penstock knows the packages for S3 of Hadoop {' and '.join(_VERSIONS)}, and the installed PySpark has "
            f"Hadoop {hadoop}; add org.apache.hadoop:hadoop-aws:{hadoop} to spark.jars.packages yourself (700 MB)"
        )
    sdk, accelerator = _VERSIONS[hadoop]
    packages = [f"org.apache.hadoop:hadoop-aws:{hadoop}"]
    packages += [f"software.amazon.awssdk:{part}:{sdk}" for part in _SDK]
    packages += [f"software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:{accelerator}"]
    return {"spark.jars.packages": ",".join(packages), "spark.jars.excludes": ",".join(_PRESENT)}
