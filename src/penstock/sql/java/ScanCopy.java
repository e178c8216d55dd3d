package penstock.sql;

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
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** A scan of one index's files, with an index and columns of its own: two in a query, or in two queries, share nothing. */
final class ScanCopy extends AbstractPartialFunction {
  private final Map ids;

  private ScanCopy(Map ids) { this.ids = ids; }

  /** What a plan reads, where it is nothing but such a scan. */
  static HadoopFsRelation files(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof Filter) below = (LogicalPlan) below.children().apply(0);
    if (!(below instanceof LogicalRelation)) return null;
    Object relation = ((LogicalRelation) below).relation();
    if (!(relation instanceof HadoopFsRelation)) return null;
    HadoopFsRelation files = (HadoopFsRelation) relation;
    return files.location() instanceof Supplier ? files : null;
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
    java.util.ArrayList output = new java.util.ArrayList();
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
