package penstock.sql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * A statement that changes rows, as a command of Spark's own: SaveIntoDataSourceCommand hands over its query (the rows
 * to write, a merge's source) as a DataFrame. A command in Java would have to be a Scala case class.
 */
public class Statement implements CreatableRelationProvider {
  private final LakeTable table;
  private final String verb;
  private final List arguments;

  private Statement(LakeTable table, String verb, List arguments) {
    this.table = table;
    this.verb = verb;
    this.arguments = arguments;
  }

  static LogicalPlan command(LakeTable table, String verb, LogicalPlan query, List arguments) {
    Map none = (Map) scala.collection.immutable.Map$.MODULE$.empty();
    return new SaveIntoDataSourceCommand(query, new Statement(table, verb, arguments), none, SaveMode.Append);
  }

  public BaseRelation createRelation(SQLContext context, SaveMode mode, Map options, Dataset rows) {
    ArrayList all = new ArrayList(arguments);
    all.add(0, rows);
    table.answer(verb, all.toArray());
    return null; // Spark only wants to look for it in its cache, and minds none
  }

  public String toString() { return verb.toUpperCase() + " " + table.name(); }
}
