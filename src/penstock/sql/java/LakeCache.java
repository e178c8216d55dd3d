package penstock.sql;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import scala.collection.immutable.Seq;

/** What Spark has cached of a lake. All threads and sessions share it, so it holds what is committed, and nothing else. */
public final class LakeCache {
  /** Reads again what is cached of a lake. What cannot be read any more goes. */
  public static void refresh(SparkSession session, String lake) {
    CacheManager manager = session.sharedState().cacheManager();
    List plans = plans(manager, lake);
    for (int i = 0; i < plans.size(); i++) {
      LogicalPlan plan = (LogicalPlan) plans.get(i);
      try {
        manager.recacheByPlan(session, plan);
      } catch (Exception e) {
        manager.uncacheQuery(session, plan, true, false);
      }
    }
  }

  /** Forgets what is cached of a lake: a transaction reads what it has written itself. */
  static void forget(SparkSession session, String lake) {
    CacheManager manager = session.sharedState().cacheManager();
    List plans = plans(manager, lake);
    for (int i = 0; i < plans.size(); i++) manager.uncacheQuery(session, (LogicalPlan) plans.get(i), true, false);
  }

  /** Whether Spark is about to cache what this thread plans. */
  static boolean isFilling() {
    StackTraceElement[] stack = Thread.currentThread().getStackTrace();
    for (int i = 0; i < stack.length; i++) {
      if (stack[i].getClassName().equals(CacheManager.class.getName())
          && (stack[i].getMethodName().contains("cacheQuery") || stack[i].getMethodName().contains("recache"))) {
        return true;
      }
    }
    return false;
  }

  private static List plans(CacheManager manager, String lake) {
    ArrayList found = new ArrayList();
    if (manager.isEmpty()) return found;
    try {
      Field field = CacheManager.class.getDeclaredField("cachedData");
      field.setAccessible(true);
      Seq all = (Seq) field.get(manager);
      for (int i = 0; i < all.size(); i++) {
        LogicalPlan plan = ((CachedData) all.apply(i)).plan();
        if (!PinnedQuery.tables(lake, plan).isEmpty()) found.add(plan);
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this Spark keeps its cache elsewhere", e);
    }
    return found;
  }
}
