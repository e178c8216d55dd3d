package penstock.sql;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Scans of files, with indexes and columns of their own: two in a query, or in two queries, share nothing. */
final class ScanCopy extends AbstractPartialFunction {
  private final Map ids;

  private ScanCopy(Map ids) { this.ids = ids; }

  /** What a plan reads, where it is nothing but such scans, one or several below each other; else null. */
  static List scans(LogicalPlan plan) {
    ArrayList found = new ArrayList();
    return isScan(plan, found) ? found : null;
  }

  private static boolean isScan(LogicalPlan plan, List found) {
    if (plan instanceof LogicalRelation) {
      Object files = ((LogicalRelation) plan).relation();
      found.add(files);
      return files instanceof HadoopFsRelation && ((HadoopFsRelation) files).location() instanceof Supplier;
    }
    if (!(plan instanceof Project || plan instanceof Filter || plan instanceof Union)) return false;
    for (int i = 0; i < plan.children().size(); i++) {
      if (!isScan((LogicalPlan) plan.children().apply(i), found)) return false;
    }
    return true;
  }

  /** `ids`: the identities that columns shall have, by those in the plan; the others get new ones, and are put there. */
  static LogicalPlan of(LogicalPlan plan, Map ids) { return (LogicalPlan) plan.transformUp(new ScanCopy(ids)); }

  public boolean isDefinedAt(Object node) { return node instanceof LogicalPlan; }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!(node instanceof LogicalRelation)) return ((LogicalPlan) node).transformExpressionsUp(new Columns());
    LogicalRelation old = (LogicalRelation) node;
    HadoopFsRelation files = (HadoopFsRelation) old.relation();
    FileIndex index = (FileIndex) ((Supplier) files.location()).get();
    HadoopFsRelation own = new HadoopFsRelation(
        index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(), files.fileFormat(), files.options(),
        files.sparkSession());
    ArrayList output = new ArrayList();
    Seq before = old.output();
    for (int i = 0; i < before.size(); i++) {
      Attribute column = (Attribute) before.apply(i);
      output.add(column.withExprId(id(column.exprId())));
    }
    return new LogicalRelation(own, Lakes.seq(output), old.catalogTable(), old.isStreaming(), old.stream());
  }

  private ExprId id(ExprId old) {
    ExprId own = (ExprId) ids.get(old);
    if (own == null) ids.put(old, own = NamedExpression$.MODULE$.newExprId());
    return own;
  }

  private class Columns extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return node instanceof AttributeReference || node instanceof Alias; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (node instanceof AttributeReference) {
        return ((AttributeReference) node).withExprId(id(((AttributeReference) node).exprId()));
      }
      if (!(node instanceof Alias)) return otherwise.apply(node);
      Alias old = (Alias) node;
      return new Alias(
          old.child(), old.name(), id(old.exprId()), old.qualifier(), old.explicitMetadata(),
          old.nonInheritableMetadataKeys());
    }
  }
}
