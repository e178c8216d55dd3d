package penstock.sql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.classic.ExpressionUtils;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Resolved expressions of a statement, made names again: Python resolves them over a scan of its own. The table's
 * columns go by their names, those of a merge's source by their places, and both are qualified by a name that nothing in
 * a subquery can have: a bare name there would be taken for the subquery's own.
 */
class StatementNames extends AbstractPartialFunction {
  private static final String QUALIFIER = "_penstock_statement";
  private final Seq target;
  private final Seq hidden;
  private final Seq source;

  StatementNames(LogicalPlan target, LogicalPlan source) {
    this.target = target.output();
    this.hidden = target.metadataOutput();
    this.source = source == null ? null : source.output();
  }

  private static int place(Seq output, AttributeReference column) {
    if (output == null) return -1;
    scala.collection.Iterator columns = output.iterator();
    for (int i = 0; columns.hasNext(); i++) {
      if (((Attribute) columns.next()).exprId().equals(column.exprId())) return i;
    }
    return -1;
  }

  private UnresolvedAttribute name(AttributeReference column) {
    ArrayList parts = new ArrayList();
    parts.add(QUALIFIER);
    int place = place(source, column);
    if (place >= 0) {
      parts.add("source");
      parts.add("_penstock_" + place);
    } else if (place(target, column) >= 0 || place(hidden, column) >= 0) {
      parts.add("target");
      parts.add(column.name());
    } else return null;
    return new UnresolvedAttribute(Lakes.seq(parts));
  }

  public boolean isDefinedAt(Object node) {
    if (node instanceof OuterReference) return isDefinedAt(((OuterReference) node).e());
    if (node instanceof SubqueryExpression) return true;
    return node instanceof AttributeReference && name((AttributeReference) node) != null;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    if (node instanceof OuterReference) return applyOrElse(((OuterReference) node).e(), otherwise);
    if (node instanceof AttributeReference) return name((AttributeReference) node);
    SubqueryExpression subquery = (SubqueryExpression) node;
    LogicalPlan plan = (LogicalPlan) subquery.plan();
    LogicalPlan plain = (LogicalPlan) plan.transformAllExpressions(new CommonExpressions());
    LogicalPlan named = (LogicalPlan) plain.transformAllExpressions(this);
    return named == plan ? subquery : subquery.withNewPlan(named);
  }

  private Object named(Expression resolved) {
    Expression plain = (Expression) resolved.transformUp(new CommonExpressions());
    return ExpressionUtils.column((Expression) plain.transformUp(this));
  }

  /** A condition, or null where every row meets it. */
  Object column(Expression resolved) {
    boolean always = resolved instanceof Literal && Boolean.TRUE.equals(((Literal) resolved).value());
    return always ? null : named(resolved);
  }

  Object column(Option resolved) { return resolved.isEmpty() ? null : column((Expression) resolved.get()); }

  /** [path, value] of each. */
  List assignments(Seq given) {
    ArrayList all = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      Assignment one = (Assignment) given.apply(i);
      ArrayList pair = new ArrayList();
      pair.add(path(one.key()));
      pair.add(named(one.value()));
      all.add(pair);
    }
    return all;
  }

  private static String path(Expression key) {
    if (!(key instanceof GetStructField)) return quoted(((Attribute) key).name());
    GetStructField field = (GetStructField) key;
    return path(field.child()) + "." + quoted(field.childSchema().apply(field.ordinal()).name());
  }

  private static String quoted(String name) { return "`" + name.replace("`", "``") + "`"; }

  /** [case, action, assignments or null, condition or null] of each. */
  void clauses(String when, Seq actions, List all) {
    for (int i = 0; i < actions.size(); i++) {
      MergeAction action = (MergeAction) actions.apply(i);
      ArrayList one = new ArrayList();
      one.add(when);
      one.add(action instanceof DeleteAction ? "delete" : action instanceof InsertAction ? "insert" : "update");
      if (action instanceof InsertAction) one.add(assignments(((InsertAction) action).assignments()));
      else if (action instanceof UpdateAction) one.add(assignments(((UpdateAction) action).assignments()));
      else one.add(null);
      one.add(column(action.condition()));
      all.add(one);
    }
  }
}
