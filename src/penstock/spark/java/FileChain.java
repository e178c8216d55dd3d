package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Filters and projections over one leaf of a plan, and what stands in them, in the leaf's own columns. */
class FileChain {
  final LogicalPlan top;
  final LogicalPlan leaf;
  final Expression[] arguments;
  final ArrayList conditions = new ArrayList();
  boolean isPlain = true; // nothing in it differs from one time to the next

  /** `arguments` are over the columns of the top. */
  FileChain(LogicalPlan top, Expression[] arguments) {
    this.top = top;
    this.arguments = arguments;
    LogicalPlan at = top;
    while (at instanceof Filter || at instanceof Project) {
      if (at instanceof Filter) split(((Filter) at).condition());
      else substitute(((Project) at).projectList());
      at = (LogicalPlan) at.children().apply(0);
    }
    leaf = at;
  }

  private void split(Expression condition) {
    isPlain = isPlain && condition.deterministic();
    if (condition instanceof And) {
      split(((And) condition).left());
      split(((And) condition).right());
    } else {
      conditions.add(condition);
    }
  }

  private void substitute(Seq projected) {
    for (int i = 0; i < projected.size(); i++) {
      isPlain = isPlain && ((Expression) projected.apply(i)).deterministic();
    }
    Computed computed = new Computed(projected);
    for (int i = 0; i < arguments.length; i++) arguments[i] = (Expression) arguments[i].transformUp(computed);
    for (int i = 0; i < conditions.size(); i++) {
      conditions.set(i, ((Expression) conditions.get(i)).transformUp(computed));
    }
  }

  /** The index of the leaf, where it may know aggregates of its rows. */
  CatalogFileIndex index() {
    CatalogFileIndex index = CatalogFileIndex.of(leaf);
    return index != null && index.isAskedForRows() ? index : null;
  }

  /** The filters, and functions of these names of the arguments, for Python. */
  String question(String[] names) {
    Seq all = scala.jdk.javaapi.CollectionConverters.asScala((List) conditions).toSeq();
    StringBuilder out = new StringBuilder("[").append(FilterText.all(all, index().derived())).append(",[");
    for (int i = 0; i < arguments.length; i++) {
      out.append(i > 0 ? ",[\"" : "[\"").append(names[i]).append("\",");
      out.append(FilterText.one(arguments[i], index().derived())).append("]");
    }
    return out.append("]]").toString();
  }

  /** The same over the files of another index. */
  LogicalPlan over(CatalogFileIndex index) {
    return (LogicalPlan) top.transformUp(new OverFiles((LogicalRelation) leaf, index));
  }

  private static class OverFiles extends AbstractPartialFunction {
    final LogicalRelation leaf;
    final CatalogFileIndex index;
    OverFiles(LogicalRelation leaf, CatalogFileIndex index) {
      this.leaf = leaf;
      this.index = index;
    }
    public boolean isDefinedAt(Object node) { return node == leaf; }
    public Object applyOrElse(Object node, Function1 otherwise) {
      return node == leaf ? CatalogFileIndex.over(leaf, index) : otherwise.apply(node);
    }
  }

  /** Columns by the expressions that a projection computes them by. */
  private static class Computed extends AbstractPartialFunction {
    final Seq projected;
    Computed(Seq projected) { this.projected = projected; }

    public boolean isDefinedAt(Object node) { return node instanceof AttributeReference && child(node) != null; }
    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? child(node) : otherwise.apply(node);
    }

    private Expression child(Object node) {
      ExprId id = ((AttributeReference) node).exprId();
      for (scala.collection.Iterator all = projected.iterator(); all.hasNext();) {
        NamedExpression one = (NamedExpression) all.next();
        if (one instanceof Alias && one.exprId().equals(id)) return ((Alias) one).child();
      }
      return null;
    }
  }
}
