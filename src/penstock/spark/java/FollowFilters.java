package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Hands the filters over a table's rows to file indexes that Spark does not give them to: those of the delete files on the
 * other side of an anti-join, and those below a map over files that Python reads. The latter are also told which columns
 * are needed, as the last of the filters: ["columns", "a", "b"].
 */
public class FollowFilters extends Rule {
  /** Adds the rules to a session, once. */
  public static void install(SparkSession session) {
    Seq rules = session.experimental().extraOptimizations();
    for (int i = 0; i < rules.size(); i++) {
      if (rules.apply(i) instanceof FollowFilters) return;
    }
    ArrayList all = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(rules));
    all.add(new CatalogAggregates());
    all.add(new FollowFilters());
    session.experimental().extraOptimizations_$eq(scala.jdk.javaapi.CollectionConverters.asScala((List) all).toSeq());
  }

  public LogicalPlan apply(LogicalPlan plan) { return informed((LogicalPlan) plan.transformUp(new OfTables())); }
  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  /** An index and the filters that stand right above its rows. */
  private static class Lead {
    CatalogFileIndex index;
    String filters;
  }

  private static Lead lead(LogicalPlan top) {
    ArrayList conditions = new ArrayList();
    LogicalPlan at = top;
    AttributeSet needed = null;
    while (true) {
      if (at instanceof Filter) split(((Filter) at).condition(), conditions);
      else if (at instanceof Project) conditions.clear();
      else break;
      if (at instanceof Project) needed = at.references();
      else if (needed != null) needed = needed.$plus$plus(at.references());
      at = (LogicalPlan) at.children().apply(0);
    }
    boolean mapped = at instanceof MapInArrow;
    if (mapped) at = (LogicalPlan) at.children().apply(0);
    while (mapped && (at instanceof Project || at instanceof Repartition)) at = (LogicalPlan) at.children().apply(0);
    CatalogFileIndex index = CatalogFileIndex.of(at);
    // A map of the user's own says nothing about the table's columns: only ours, right above its files, is looked through.
    if (index == null || index.isReadInPython() != mapped) return null;
    Lead found = new Lead();
    found.index = index;
    found.filters = FilterText.all(
        scala.jdk.javaapi.CollectionConverters.asScala((List) conditions).toSeq(), index.derived(),
        mapped ? columns(needed) : null);
    return found;
  }

  /** What must all be true, one by one, as Spark hands it to an index: so that both ask the same. */
  private static void split(Expression condition, List all) {
    if (condition instanceof And) {
      split(((And) condition).left(), all);
      split(((And) condition).right(), all);
    } else {
      all.add(condition);
    }
  }

  private static Seq columns(AttributeSet needed) { return needed == null ? null : needed.toSeq(); }

  /** A chain of filters and projections over files or over a map, its index told of both; anything else as it is. */
  private static LogicalPlan informed(LogicalPlan top) {
    if (!isLink(top) && CatalogFileIndex.of(top) == null) return top;
    Lead own = lead(top);
    if (own == null || own.index.isFollower()) return top;
    return (LogicalPlan) top.transformUp(new Given(own, false));
  }

  private static boolean isLink(LogicalPlan node) { return node instanceof Filter || node instanceof Project; }

  private static class OfTables extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return node instanceof LogicalPlan && !isLink((LogicalPlan) node); }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      LogicalPlan plan = withInformedChildren((LogicalPlan) node);
      if (!(plan instanceof Join && ((Join) plan).joinType() == LeftAnti$.MODULE$)) return plan;
      Join join = (Join) plan;
      Lead left = lead(join.left());
      if (left == null) return plan;
      LogicalPlan right = (LogicalPlan) join.right().transformUp(new Given(left, true));
      return right == join.right() ? plan : new Join(join.left(), right, join.joinType(), join.condition(), join.hint());
    }

    private static LogicalPlan withInformedChildren(LogicalPlan node) {
      Seq children = node.children();
      ArrayList all = new ArrayList();
      boolean same = true;
      for (int i = 0; i < children.size(); i++) {
        LogicalPlan child = (LogicalPlan) children.apply(i);
        LogicalPlan informed = informed(child);
        same = same && informed == child;
        all.add(informed);
      }
      if (same) return node;
      return (LogicalPlan) node.withNewChildren(scala.jdk.javaapi.CollectionConverters.asScala((List) all).toSeq());
    }
  }

  /**
   * Relations with the lead's filters in place: over the indexes that were made to follow it, or over its own, below a map.
   * What stands on the other side of a user's own anti-join may be the lead's own index, with other filters.
   */
  private static class Given extends AbstractPartialFunction {
    final Lead lead;
    final boolean followers;
    Given(Lead lead, boolean followers) {
      this.lead = lead;
      this.followers = followers;
    }

    public boolean isDefinedAt(Object node) {
      CatalogFileIndex index = CatalogFileIndex.of(node);
      return index != null && index.isFollower() == followers && index.follows(lead.index)
          && !lead.filters.equals(isGiven(index) ? index.given() : index.told());
    }

    /** Whether the index has to go by the lead's filters. The others Spark gives their own, and these are for EXPLAIN. */
    private boolean isGiven(CatalogFileIndex index) { return followers || index.isReadInPython(); }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      CatalogFileIndex index = CatalogFileIndex.of(node);
      return CatalogFileIndex.over(
          (LogicalRelation) node, isGiven(index) ? index.withFilters(lead.filters) : index.toldOf(lead.filters));
    }
  }
}
