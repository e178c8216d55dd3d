package penstock.sql;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.TableChange;

/** What ALTER TABLE changes, as Python is told it: a map with `what` and what belongs to it. */
final class TableChanges {
  static Map told(TableChange change) {
    LinkedHashMap told = new LinkedHashMap();
    if (change instanceof TableChange.ColumnChange) {
      told.put("path", ((TableChange.ColumnChange) change).fieldNames());
    }
    if (change instanceof TableChange.SetProperty) {
      told.put("what", "set property");
      told.put("name", ((TableChange.SetProperty) change).property());
      told.put("value", ((TableChange.SetProperty) change).value());
    } else if (change instanceof TableChange.RemoveProperty) {
      told.put("what", "remove property");
      told.put("name", ((TableChange.RemoveProperty) change).property());
    } else if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn added = (TableChange.AddColumn) change;
      told.put("what", "add column");
      told.put("type", added.dataType().json());
      told.put("nullable", Boolean.valueOf(added.isNullable()));
      told.put("comment", added.comment());
      told.put("default", sql(added.defaultValue()));
      told.put("position", added.position() == null ? null : added.position().toString());
    } else if (change instanceof TableChange.RenameColumn) {
      told.put("what", "rename column");
      told.put("name", ((TableChange.RenameColumn) change).newName());
    } else if (change instanceof TableChange.UpdateColumnType) {
      told.put("what", "set type");
      told.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
    } else if (change instanceof TableChange.UpdateColumnNullability) {
      told.put("what", "set nullable");
      told.put("nullable", Boolean.valueOf(((TableChange.UpdateColumnNullability) change).nullable()));
    } else if (change instanceof TableChange.UpdateColumnComment) {
      told.put("what", "set comment");
      told.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
      told.put("what", "set default");
      told.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
    } else if (change instanceof TableChange.DeleteColumn) {
      told.put("what", "drop column");
      told.put("if_exists", ((TableChange.DeleteColumn) change).ifExists());
    } else if (change instanceof TableChange.ClusterBy) {
      told.put("what", "cluster by");
      told.put("columns", columns(((TableChange.ClusterBy) change).clusteringColumns()));
    } else {
      told.put("what", change.getClass().getSimpleName());
    }
    return told;
  }

  private static List columns(org.apache.spark.sql.connector.expressions.NamedReference[] given) {
    ArrayList all = new ArrayList();
    for (int i = 0; i < given.length; i++) all.add(given[i].fieldNames());
    return all;
  }

  /** Janino does not see the public getSql() of a class whose superclass is not public. */
  private static String sql(Object defaultValue) {
    if (defaultValue == null) return null;
    try {
      java.lang.reflect.Method method = defaultValue.getClass().getMethod("getSql", new Class[0]);
      method.setAccessible(true);
      return (String) method.invoke(defaultValue, new Object[0]);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
}
