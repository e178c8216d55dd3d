package penstock.sql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * The query of a statement, with the lake's tables in it as they are when the statement begins: it may read what it
 * writes. Python is told which tables there are, and gives an analyzed plan for each.
 */
public final class PinnedQuery {
  /** [handle, whether row ids are wanted] of every table of the lake, in the order that `of` takes plans in. */
  public static List tables(String lake, LogicalPlan query) {
    Tables found = new Tables(lake, null);
    query.transformDownWithSubqueries(found);
    return found.seen;
  }

  public static LogicalPlan of(String lake, LogicalPlan query, List plans) {
    return (LogicalPlan) query.transformDownWithSubqueries(new Tables(lake, plans));
  }

  private static class Tables extends AbstractPartialFunction {
    final String lake;
    final List plans;
    final ArrayList seen = new ArrayList();
    Tables(String lake, List plans) {
      this.lake = lake;
      this.plans = plans;
    }

    public boolean isDefinedAt(Object node) {
      LakeRows table = ReadLakeTables.rowsOf(node);
      return table instanceof LakeTable && table.lake().equals(lake);
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      DataSourceV2Relation relation = (DataSourceV2Relation) node;
      ArrayList one = new ArrayList();
      one.add(((LakeTable) ReadLakeTables.rowsOf(node)).handle());
      one.add(Boolean.valueOf(ReadLakeTables.hasRowIds(relation)));
      seen.add(one);
      return plans == null ? node : ReadLakeTables.with(relation, (LogicalPlan) plans.get(seen.size() - 1));
    }
  }
}
