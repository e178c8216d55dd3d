package penstock.sql;

import java.util.ArrayList;
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
  private final HadoopFsRelation files;
  private final Object settings;

  private KeptPlans(LogicalPlan plan, HadoopFsRelation files, Object settings) {
    this.plan = plan;
    this.files = files;
    this.settings = settings;
  }

  /** What a plan is found by: the first is the lake. */
  static List key(LakeTable table, String pin, boolean rowIds) {
    ArrayList key = new ArrayList();
    key.add(table.lake());
    key.add(table.id());
    key.add(table.handle());
    key.add(pin);
    key.add(Boolean.valueOf(rowIds));
    return key;
  }

  static LogicalPlan of(List key) {
    KeptPlans kept = (KeptPlans) PLANS.get(key);
    return kept != null && kept.settings.equals(settings(kept.files.sparkSession())) ? kept.plan : null;
  }

  /** `settings`: those of the active session before the plan was made, for another thread may change them meanwhile. */
  static void keep(List key, LogicalPlan plan, Object settings) {
    HadoopFsRelation files = scanned(plan);
    boolean own = files != null && files.sparkSession() == SparkSession.active();
    if (own && settings.equals(settings(files.sparkSession()))) PLANS.put(key, new KeptPlans(plan, files, settings));
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

  /** What a plan reads, where it is one scan of files that every session may read. */
  private static HadoopFsRelation scanned(LogicalPlan plan) {
    HadoopFsRelation files = ScanCopy.files(plan);
    if (files == null) return null;
    scala.collection.Iterator options = files.options().keysIterator();
    while (options.hasNext()) {
      if (((String) options.next()).startsWith(OF_STORES)) return null;
    }
    return files;
  }
}
