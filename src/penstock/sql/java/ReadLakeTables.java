package penstock.sql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeSet;
import java.util.WeakHashMap;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Optimizer rule: in the place of a lake's table, the plan of its rows that Python makes. It stands among the rules that
 * push filters and columns down, so that these go on into Python's plan.
 *
 * Subqueries are optimized one by one, and all of a query must see one snapshot: what was asked first is kept for it.
 */
public class ReadLakeTables extends Rule {
  // Both by the tracker that Spark makes for each query, then by lake.
  private static final Map PINS = new WeakHashMap();
  private static final Map NOTES = new WeakHashMap();

  public LogicalPlan apply(LogicalPlan plan) { return (LogicalPlan) plan.transformUp(new Relations()); }
  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  /** Keeps what Python has noted of a view or macro in the query that is analyzed, for when its rows are asked for. */
  static void note(String lake, Object note) {
    Option tracker = QueryPlanningTracker.get();
    if (note == null || tracker.isEmpty()) return;
    synchronized (NOTES) {
      Map noted = (Map) NOTES.get(tracker.get());
      if (noted == null) NOTES.put(tracker.get(), noted = new HashMap());
      if (!noted.containsKey(lake)) noted.put(lake, new TreeSet());
      ((TreeSet) noted.get(lake)).add(note);
    }
  }

  private static String noted(Object tracker, String lake) {
    synchronized (NOTES) {
      Map noted = (Map) NOTES.get(tracker);
      return noted == null || !noted.containsKey(lake) ? "[]" : Lakes.json(noted.get(lake));
    }
  }

  private static String pin(String lake) {
    Option tracker = QueryPlanningTracker.get();
    if (tracker.isEmpty()) return (String) Lakes.answer(lake, new Object[] {"pin", "[]"});
    synchronized (PINS) {
      Map pins = (Map) PINS.get(tracker.get());
      if (pins == null) PINS.put(tracker.get(), pins = new HashMap());
      String known = (String) pins.get(lake);
      if (known != null) return known;
    }
    String found = (String) Lakes.answer(lake, new Object[] {"pin", noted(tracker.get(), lake)});
    synchronized (PINS) {
      ((Map) PINS.get(tracker.get())).put(lake, found);
    }
    return found;
  }

  static LakeRows rowsOf(Object node) {
    if (!(node instanceof DataSourceV2Relation)) return null;
    Object table = ((DataSourceV2Relation) node).table();
    if (table instanceof LakeFormat.Found) return ((LakeFormat.Found) table).table();
    if (table instanceof LakeRows) return (LakeRows) table;
    if (!table.getClass().getSimpleName().equals("ChangelogTable")) return null;
    try { // Spark's wrapper of the changes that a catalog gives
      Object changes = table.getClass().getMethod("changelog", new Class[0]).invoke(table, new Object[0]);
      return changes instanceof LakeRows ? (LakeRows) changes : null;
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** An analyzed plan as the optimizer has it after its first rules; the others are on their way to it. */
  private static LogicalPlan finished(LogicalPlan plan) {
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    return (LogicalPlan) ((Rule) session.sessionState().optimizer().FinishAnalysis()).apply((TreeNode) plan);
  }

  private static LogicalPlan rows(LakeRows table, String pin, boolean rowIds) {
    boolean settled = table.isSettled(pin);
    LogicalPlan kept = settled ? KeptPlans.of((LakeTable) table, pin, rowIds) : null;
    if (kept != null) return kept;
    Object settings = KeptPlans.settings(org.apache.spark.sql.SparkSession.active());
    LogicalPlan made = finished((LogicalPlan) table.rows(pin, rowIds));
    if (settled) KeptPlans.keep((LakeTable) table, pin, rowIds, made, settings);
    return made;
  }

  /** The relation with its rows; `plan` has the columns by their names, in any order. */
  static LogicalPlan with(DataSourceV2Relation relation, LogicalPlan plan) {
    Seq wanted = relation.output();
    Seq output = plan.output(); // made anew at each call
    boolean scan = ScanCopy.scans(plan) != null;
    HashMap ids = new HashMap();
    ArrayList columns = new ArrayList();
    for (int i = 0; i < wanted.size(); i++) {
      AttributeReference column = (AttributeReference) wanted.apply(i);
      Attribute found = found(relation, column, output);
      ids.put(found.exprId(), column.exprId());
      columns.add(scan ? (Object) found.withExprId(column.exprId()) : alias(found, column));
    }
    LogicalPlan rows = scan ? ScanCopy.of(plan, ids) : plan;
    return scan && rows.output().equals(Lakes.seq(columns)) ? rows : new Project(Lakes.seq(columns), rows);
  }

  private static Attribute found(DataSourceV2Relation relation, AttributeReference column, Seq output) {
    Attribute found = named(output, column.name());
    if (found != null && found.dataType().sameType(column.dataType())) return found;
    String message = "column " + column.name() + " of " + relation.table().name()
        + " was changed since the query was made; make it again";
    throw Lakes.raised(new LakeException("", message));
  }

  static Alias alias(Attribute found, AttributeReference column) {
    Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
    return new Alias(found, column.name(), column.exprId(), none, Option.apply(column.metadata()), none);
  }

  static boolean hasRowIds(DataSourceV2Relation relation) { return named(relation.output(), LakeTable.ROW_ID) != null; }

  private static Attribute named(Seq output, String name) {
    for (scala.collection.Iterator columns = output.iterator(); columns.hasNext();) {
      Attribute column = (Attribute) columns.next();
      if (column.name().equals(name)) return column;
    }
    return null;
  }

  /** What nobody would look at is an error. Spark has looked at these two itself. */
  private static void checkOptions(DataSourceV2Relation relation) {
    for (Iterator options = relation.options().keySet().iterator(); options.hasNext();) {
      String option = (String) options.next();
      if (option.equals("versionasof") || option.equals("timestampasof")) continue;
      throw Lakes.raised(new LakeException("", relation.table().name() + " is read by its name, and takes no option "
          + option + ", only versionAsOf and timestampAsOf; table.read() and the format ducklake take others"));
    }
  }

  private static class Relations extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return rowsOf(node) != null; }

    public Object applyOrElse(Object node, Function1 otherwise) {
      LakeRows table = rowsOf(node);
      if (table == null) return otherwise.apply(node);
      DataSourceV2Relation relation = (DataSourceV2Relation) node;
      if (relation.table() instanceof LakeTable) checkOptions(relation);
      String pin = pin(table.lake());
      if (Lakes.map(pin).get("version") == null && LakeCache.isFilling()) {
        throw Lakes.raised(new LakeException("", "what a transaction sees of " + relation.table().name()
            + " cannot be cached: all threads share Spark's cache; cache it after the transaction"));
      }
      return with(relation, rows(table, pin, hasRowIds(relation)));
    }
  }
}
