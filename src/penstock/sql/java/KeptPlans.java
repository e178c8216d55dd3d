package penstock.sql;

import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/**
 * Plans of tables' rows, kept for the next query of the same snapshot: to make one takes as long as to plan the rest of a
 * short query. Kept are scans of files alone, which hold no rows and no keys of a store; a query takes a ScanCopy. What else
 * a plan is made by are the settings of its session: a kept one has to have the same.
 */
final class KeptPlans {
  private static final String OF_STORES = "penstock."; // among a scan's options: see stores.py
  private static final Map PLANS = Collections.synchronizedMap(new Lakes.Latest());
  private final LogicalPlan plan;
  private final List state;
  private final SparkSession session;
  private final Object settings;

  private KeptPlans(LogicalPlan plan, List state, SparkSession session, Object settings) {
    this.plan = plan;
    this.state = state;
    this.session = session;
    this.settings = settings;
  }

  /** What a plan is found by, the first of which is the lake: of a table only the newest is kept. */
  private static List key(LakeTable table, boolean rowIds) {
    return Arrays.asList(new Object[] {table.lake(), table.id(), Boolean.valueOf(rowIds)});
  }

  private static List state(LakeTable table, String pin) { return Arrays.asList(new Object[] {table.handle(), pin}); }

  static LogicalPlan of(LakeTable table, String pin, boolean rowIds) {
    KeptPlans kept = (KeptPlans) PLANS.get(key(table, rowIds));
    boolean same = kept != null && kept.state.equals(state(table, pin));
    return same && kept.settings.equals(settings(kept.session)) ? kept.plan : null;
  }

  /**
   * `settings` are those of the active session before the plan was made. Another thread may have changed them meanwhile,
   * or somebody the lake, or closed it.
   */
  static void keep(LakeTable table, String pin, boolean rowIds, LogicalPlan plan, Object settings) {
    SparkSession session = SparkSession.active();
    List scans = ScanCopy.scans(plan);
    boolean keeps = scans != null && settings.equals(settings(session));
    for (int i = 0; keeps && i < scans.size(); i++) keeps = isOf((HadoopFsRelation) scans.get(i), session);
    if (!keeps || !pin.equals(Lakes.answer(table.lake(), new Object[] {"pin", "[]"}))) return;
    PLANS.put(key(table, rowIds), new KeptPlans(plan, state(table, pin), session, settings));
    if (!Lakes.has(table.lake())) forget(table.lake());
  }

  /** Whether files are read by the settings of a session alone, and not with those of a store. */
  private static boolean isOf(HadoopFsRelation files, SparkSession session) {
    scala.collection.Iterator options = files.options().keysIterator();
    while (options.hasNext()) {
      if (((String) options.next()).startsWith(OF_STORES)) return false;
    }
    return files.sparkSession() == session;
  }

  static void forget(String lake) {
    synchronized (PLANS) {
      for (Iterator keys = PLANS.keySet().iterator(); keys.hasNext();) {
        if (((List) keys.next()).get(0).equals(lake)) keys.remove();
      }
    }
  }

  static Object settings(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf().getAllConfs();
  }
}
