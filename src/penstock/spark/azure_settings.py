"""Hadoop's settings for Azure: what a session says of an account, and what a scan is told of a container."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.spark.hadoop import secret_of
from penstock.storage.azure import AzureAccess

# By the scheme of a path.
FILE_SYSTEMS = {
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
}
# For a server that has accounts in its paths, and nothing but blobs: Azurite.
_OF_OWN_SERVER = {
    "fs.azure.fns.account.service.type": "BLOB",
    "fs.azure.account.hns.enabled": "false",
    "fs.azure.always.use.https": "false",
    "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
}


def session_options(spark: SparkSession, access: AzureAccess) -> dict[str, str]:
    """What the session's `fs.azure` settings say of an account."""
    names = {"azure_storage_account_key": "account.key", "azure_storage_sas_token": "sas.fixed.token"}
    found = {
        option: secret_of(spark, f"fs.azure.{name}.{access.dfs_host}", f"fs.azure.{name}")
        for option, name in names.items()
    }
    return {option: value for option, value in found.items() if value}


def scan_settings(access: AzureAccess) -> dict[str, str]:
    """By which a scan reads a container."""
    host, settings = access.dfs_host, {}
    if access.key:
        settings[f"fs.azure.account.auth.type.{host}"] = "SharedKey"
        settings[f"fs.azure.account.key.{host}"] = access.key
    elif access.sas_token:
        settings[f"fs.azure.account.auth.type.{host}"] = "SAS"
        settings[f"fs.azure.sas.fixed.token.{host}"] = access.sas_token
    if access.server:
        settings |= {"fs.azure.abfs.endpoint": access.server, **_OF_OWN_SERVER}
    return settings
