"""The releases of Spark that Penstock runs on, and the errors on others."""

from __future__ import annotations

import pyspark
import pytest

from penstock.errors import UnsupportedError
from penstock.spark import s3_packages
from penstock.spark.releases import check_installed, check_session, has_views_of_catalogs


def test_known_releases() -> None:
    for version in (pyspark.__version__, "4.1.0", "4.2.1", "4.3.0.dev1", "4.1.4-amzn-1", "4.3"):
        check_installed(version)
        check_session(version)
    assert [has_views_of_catalogs(f"4.{minor}.0") for minor in (1, 2, 3)] == [False, True, True]


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.4.0", "5.0.0", "4.10.0", "nonsense"])
def test_other_releases_are_refused(version: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"runs {version}; pip install 'pyspark>=4\.1,<4\.4'"):
        check_session(version)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_older_ones_cannot_be_imported_with(version: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"this is PySpark {version}, which has no types .*pip install"):
        check_installed(version)


def test_packages_for_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    for hadoop, sdk in (("3.4.2", "2.29.52"), ("3.5.0", "2.35.4")):
        monkeypatch.setattr(s3_packages, "hadoop_version", lambda hadoop=hadoop: hadoop)
        given = s3_packages.s3_packages()["spark.jars.packages"].split(",")
        assert f"org.apache.hadoop:hadoop-aws:{hadoop}" in given
        assert f"software.amazon.awssdk:s3:{sdk}" in given
    monkeypatch.setattr(s3_packages, "hadoop_version", lambda: "3.6.0")
    with pytest.raises(UnsupportedError, match=r"Hadoop 3\.6\.0; add org\.apache\.hadoop:hadoop-aws:3\.6\.0"):
        s3_packages.s3_packages()
