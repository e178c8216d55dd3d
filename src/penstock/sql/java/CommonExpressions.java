package penstock.sql;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.With;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * What Spark computes once for several uses, as in BETWEEN and nullif, put where it is used: an expression that has it
 * apart cannot be resolved a second time.
 */
class CommonExpressions extends AbstractPartialFunction {
  public boolean isDefinedAt(Object node) { return node instanceof With; }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!(node instanceof With)) return otherwise.apply(node);
    Seq given = ((With) node).defs();
    Uses uses = new Uses();
    for (int i = 0; i < given.size(); i++) {
      CommonExpressionDef one = (CommonExpressionDef) given.apply(i);
      Expression value = (Expression) one.child();
      if (!value.deterministic()) {
        String message = "a statement cannot compare " + value.sql() + ", which differs each time, in more than one way, as "
            + "BETWEEN does; compare it once";
        throw Lakes.raised(new LakeException("", message));
      }
      uses.values.put(one.id(), value);
    }
    return ((Expression) ((With) node).child()).transformUp(uses);
  }

  private static class Uses extends AbstractPartialFunction {
    final Map values = new HashMap();
    public boolean isDefinedAt(Object node) {
      return node instanceof CommonExpressionRef && values.containsKey(((CommonExpressionRef) node).id());
    }
    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? values.get(((CommonExpressionRef) node).id()) : otherwise.apply(node);
    }
  }
}
