"""Connects Penstock to Spark: sessions, types, scans and jobs that all formats share."""

import pyspark

from penstock.spark.releases import check_installed

check_installed(pyspark.__version__)
