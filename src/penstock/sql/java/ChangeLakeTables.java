package penstock.sql;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.TruncateTable;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.Product;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Post-hoc resolution rule: INSERT, DELETE, UPDATE, MERGE and TRUNCATE on a lake's table become commands that call Python. All is
 * resolved then, so that Spark has said what is wrong with columns and types, and has not asked for a rewrite by rows.
 */
public class ChangeLakeTables extends Rule {
  public LogicalPlan apply(LogicalPlan plan) {
    refuseSeveral(plan);
    return (LogicalPlan) plan.resolveOperatorsUp(new Commands());
  }
  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  private static LogicalPlan target(Object node) {
    if (node instanceof TruncateTable) return ((TruncateTable) node).table();
    if (node instanceof DeleteFromTable) return ((DeleteFromTable) node).table();
    if (node instanceof UpdateTable) return ((UpdateTable) node).table();
    if (node instanceof MergeIntoTable) return ((MergeIntoTable) node).targetTable();
    boolean writes = node instanceof AppendData || node instanceof OverwriteByExpression
        || node instanceof OverwritePartitionsDynamic;
    // Janino does not choose between the return types of table() in two traits.
    return writes ? (LogicalPlan) ((Product) node).productElement(0) : null;
  }

  private static LakeTable table(LogicalPlan target) {
    Seq leaves = target.collectLeaves();
    if (leaves.size() != 1) return null;
    Object found = null;
    if (leaves.apply(0) instanceof DataSourceV2Relation) found = ((DataSourceV2Relation) leaves.apply(0)).table();
    if (leaves.apply(0) instanceof ResolvedTable) found = ((ResolvedTable) leaves.apply(0)).table();
    return found instanceof LakeTable ? (LakeTable) found : null;
  }

  /** INSERT INTO a ... INSERT INTO b ... of one query: several statements, of which one may fail. */
  private static void refuseSeveral(LogicalPlan plan) {
    if (!(plan instanceof Union)) return;
    for (int i = 0; i < plan.children().size(); i++) {
      LogicalPlan target = target(plan.children().apply(i));
      if (target == null || !target.resolved() || table(target) == null) continue;
      throw Lakes.raised(new LakeException("", "several INSERTs of one FROM are several statements to a lake, and not one"
          + " snapshot: write them one by one, inside `with lake.transaction():` if they belong together"));
    }
  }

  private static class Commands extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      LogicalPlan target = target(node);
      return target != null && ((LogicalPlan) node).resolved() && table(target) != null;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      LogicalPlan target = target(node);
      LakeTable table = table(target);
      if (node instanceof TruncateTable) return Statement.command(table, "truncate", new OneRowRelation(), new ArrayList());
      if (node instanceof MergeIntoTable) return merge(table, target, (MergeIntoTable) node);
      StatementNames names = new StatementNames(target, null);
      ArrayList arguments = new ArrayList();
      LogicalPlan query = new OneRowRelation();
      String verb = null;
      if (node instanceof AppendData) {
        verb = "append";
        query = ((AppendData) node).query();
        arguments.add(options(((AppendData) node).writeOptions()));
      } else if (node instanceof OverwriteByExpression) {
        verb = "overwrite";
        query = ((OverwriteByExpression) node).query();
        arguments.add(options(((OverwriteByExpression) node).writeOptions()));
        arguments.add(names.column(((OverwriteByExpression) node).deleteExpr()));
      } else if (node instanceof OverwritePartitionsDynamic) {
        verb = "overwrite_partitions";
        query = ((OverwritePartitionsDynamic) node).query();
        arguments.add(options(((OverwritePartitionsDynamic) node).writeOptions()));
      } else if (node instanceof DeleteFromTable) {
        verb = "delete";
        arguments.add(names.column(((DeleteFromTable) node).condition()));
      } else {
        verb = "update";
        arguments.add(names.assignments(((UpdateTable) node).assignments()));
        arguments.add(names.column(((UpdateTable) node).condition()));
      }
      return Statement.command(table, verb, query, arguments);
    }

    private static LogicalPlan merge(LakeTable table, LogicalPlan target, MergeIntoTable command) {
      StatementNames names = new StatementNames(target, command.sourceTable());
      ArrayList clauses = new ArrayList();
      names.clauses("matched", command.matchedActions(), clauses);
      names.clauses("not matched", command.notMatchedActions(), clauses);
      names.clauses("not matched by source", command.notMatchedBySourceActions(), clauses);
      ArrayList arguments = new ArrayList();
      arguments.add(names.column(command.mergeCondition()));
      arguments.add(clauses);
      return Statement.command(table, "merge", command.sourceTable(), arguments);
    }

    private static String options(scala.collection.immutable.Map given) {
      return Lakes.json(scala.jdk.javaapi.CollectionConverters.asJava(given));
    }
  }
}
