package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Hands the filters over a table's rows to file indexes that Spark does not give them to: those of the delete files on the
 * other side of an anti-join, and those below a map over files that Python reads.
 */
public class FollowFilters extends Rule {
  public static void install(SparkSession session) {
    Seq rules = session.experimental().extraOptimizations();
    for (int i = 0; i < rules.size(); i++) {
      if (rules.apply(i) instanceof FollowFilters) return;
    }
    ArrayList all = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(rules));
    all.add(new FollowFilters());
    session.experimental().extraOptimizations_$eq(scala.jdk.javaapi.CollectionConverters.asScala((List) all).toSeq());
  }

  public LogicalPlan apply(LogicalPlan plan) { return (LogicalPlan) plan.transformUp(new OfTables()); }
  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  /** An index and the filters that stand right above its rows. */
  private static class Lead {
    CatalogFileIndex index;
    String filters;
  }

  private static Lead lead(LogicalPlan top) {
    ArrayList conditions = new ArrayList();
    LogicalPlan at = top;
    while (true) {
      if (at instanceof Filter) conditions.add(((Filter) at).condition());
      else if (at instanceof Project) conditions.clear();
      else break;
      at = (LogicalPlan) at.children().apply(0);
    }
    boolean mapped = at instanceof MapInArrow;
    if (mapped) at = (LogicalPlan) at.children().apply(0);
    while (mapped && at instanceof Project) at = (LogicalPlan) at.children().apply(0);
    CatalogFileIndex index = index(at);
    // A map of the user's own says nothing about the table's columns: only ours, right above its files, is looked through.
    if (index == null || index.isReadInPython() != mapped) return null;
    Lead found = new Lead();
    found.index = index;
    found.filters = FilterText.all(
        scala.jdk.javaapi.CollectionConverters.asScala((List) conditions).toSeq(), index.derived());
    return found;
  }

  private static CatalogFileIndex index(Object node) {
    if (!(node instanceof LogicalRelation)) return null;
    Object relation = ((LogicalRelation) node).relation();
    if (!(relation instanceof HadoopFsRelation)) return null;
    Object location = ((HadoopFsRelation) relation).location();
    return location instanceof CatalogFileIndex ? (CatalogFileIndex) location : null;
  }

  private static class OfTables extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return (node instanceof Join && ((Join) node).joinType() == LeftAnti$.MODULE$)
          || (node instanceof Filter && ((Filter) node).child() instanceof MapInArrow);
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      if (node instanceof Filter) {
        Lead own = lead((LogicalPlan) node);
        if (own == null || own.index.isFollower()) return node;
        return ((LogicalPlan) node).transformUp(new Followers(own));
      }
      Join join = (Join) node;
      Lead left = lead(join.left());
      if (left == null) return node;
      LogicalPlan right = (LogicalPlan) join.right().transformUp(new Followers(left));
      return right == join.right() ? node : new Join(join.left(), right, join.joinType(), join.condition(), join.hint());
    }
  }

  /** Relations over indexes that follow the lead (or are it, below a map), with its filters in place. */
  private static class Followers extends AbstractPartialFunction {
    final Lead lead;
    Followers(Lead lead) { this.lead = lead; }

    public boolean isDefinedAt(Object node) {
      CatalogFileIndex index = index(node);
      return index != null && index.follows(lead.index) && !lead.filters.equals(index.given());
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      LogicalRelation old = (LogicalRelation) node;
      HadoopFsRelation files = (HadoopFsRelation) old.relation();
      HadoopFsRelation chosen = new HadoopFsRelation(
          index(node).withFilters(lead.filters), files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
          files.fileFormat(), files.options(), files.sparkSession());
      return new LogicalRelation(chosen, old.output(), old.catalogTable(), old.isStreaming(), old.stream());
    }
  }
}
