"""Sessions that know a lake: its catalog in the settings, and clones in which it is the current one."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.java_classes import java_class
from penstock.sql.bridge import catalog_class

_SETTING = "spark.sql.catalog."


def setting(name: str) -> str:
    """Spark's setting of the class that is a catalog."""
    return _SETTING + name


def catalog_settings(spark: SparkSession, name: str, lake_id: str) -> dict[str, str]:
    """The settings by which Spark makes a lake's catalog."""
    return {f"{setting(name)}.lake": lake_id, setting(name): catalog_class(spark)}


def forget_catalog(session: Any, name: str) -> None:
    """Let a session make a catalog anew: it keeps those that it has made."""
    manager = session.sessionState().catalogManager()
    kind = manager.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if field.getName() == "catalogs":
                field.setAccessible(True)
                field.get(manager).remove(name)
                return
        kind = kind.getSuperclass()


def session_in_lake(spark: SparkSession, name: str, lake_id: str, schema: str) -> Any:
    """A clone of a session (in the JVM), in which a lake is the current catalog: nobody else's changes."""
    own = spark._jsparkSession.cloneSession()
    for key, value in catalog_settings(spark, name, lake_id).items():
        own.conf().set(key, value)
    forget_catalog(own, name)
    set_current(spark, own, name, schema)
    return own


def set_current(spark: SparkSession, session: Any, catalog: str, schema: str | None) -> None:
    """Make a catalog, and a schema in it, the current one of a session of the JVM's."""
    sessions = java_class(spark, "org.apache.spark.sql.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(session)  # whose settings Spark looks for the catalog in
    try:
        manager = session.sessionState().catalogManager()
        manager.setCurrentCatalog(catalog)
        if schema is not None:
            gateway: Any = spark.sparkContext._gateway
            namespace = gateway.new_array(java_class(spark, "java.lang.String"), 1)
            namespace[0] = schema
            manager.setCurrentNamespace(namespace)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
