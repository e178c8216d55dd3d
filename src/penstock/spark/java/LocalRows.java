package penstock;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.api.python.SerDeUtil;
import org.apache.spark.rdd.MapPartitionsRDD;
import org.apache.spark.rdd.ParallelCollectionRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.InternalRow$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.storage.StorageLevel;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of a query over what the driver holds already: VALUES, a SELECT of constants, a local relation, or what
 * PySpark's createDataFrame makes of a list. Spark's own optimizer computes them, so that no job has to run.
 */
public class LocalRows {
  /** What PySpark makes of a list: pickled rows in the driver, a function of Python's, and steps that unpickle them. */
  private static final String OF_LIST = "readRDDFromFile at ";
  private static final String UNPICKLED = "SerDeUtil.scala:";
  private static final String WITH_SCHEMA = "applySchemaToPythonRDD at ";
  private static final int LONGEST_COMMAND = 16384;

  /** Functions of Python's that give back what they get, as Python has told. */
  private final Set trusted = ConcurrentHashMap.newKeySet();

  /**
   * The rows as a stream of Arrow, empty where there are none; null for more rows or bytes, and where it takes a job.
   * A text is a function of Python's, in base 64: if it gives back what it gets, trust it, and ask again.
   *
   * What is cached stays what it was when it was computed, also where it would be another now. And of a list, which is
   * in several partitions, tasks draw other random values than the optimizer, which has all of it at once.
   */
  public Object arrow(Dataset frame, int mostRows, long mostBytes) throws Exception {
    LogicalPlan plan = frame.queryExecution().withCachedData();
    LogicalRDD listed = listed(plan);
    ParallelCollectionRDD source = null;
    if (listed != null) {
      PythonRDD mapped = plan.deterministic() ? mapped(listed) : null;
      if (mapped == null) return null;
      String command = command(mapped);
      if (!trusted.contains(command)) return command.length() > LONGEST_COMMAND ? null : command;
      source = (ParallelCollectionRDD) parent(mapped);
    }
    SparkSession session = (SparkSession) frame.sparkSession();
    LogicalPlan held = held(plan, source, session, mostRows);
    if (held == null) return null;
    LogicalPlan optimized = Dataset.ofRows(session, held).queryExecution().optimizedPlan();
    if (!(optimized instanceof LocalRelation) || optimized.isStreaming()) return null;
    Seq rows = ((LocalRelation) optimized).data();
    if (rows.size() > mostRows) return null;
    if (rows.isEmpty()) return new byte[0];
    Iterator batches = ArrowConverters$.MODULE$.toBatchWithSchemaIterator(
        rows.iterator(), frame.schema(), mostRows, mostBytes, "UTC", true, false);
    byte[] batch = (byte[]) batches.next();
    return batches.hasNext() ? null : batch;
  }

  public void trust(String command) { trusted.add(command); }

  /** The relation of a list below projections; null where there is none. */
  private static LogicalRDD listed(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof SubqueryAlias || at instanceof Project) at = (LogicalPlan) at.children().apply(0);
    return at instanceof LogicalRDD ? (LogicalRDD) at : null;
  }

  /** The plan over a relation that holds its rows; null where it does not, or where there is more than a projection. */
  private static LogicalPlan held(LogicalPlan plan, ParallelCollectionRDD source, SparkSession session, int most) {
    if (plan instanceof SubqueryAlias) return held(((SubqueryAlias) plan).child(), source, session, most);
    if (plan instanceof Project) {
      LogicalPlan child = held(((Project) plan).child(), source, session, most);
      return child == null ? null : new Project(((Project) plan).projectList(), child);
    }
    if (plan instanceof LogicalRDD) return unpickled(plan, source, session, most);
    if (plan instanceof OneRowRelation) {
      ArrayList row = new ArrayList();
      row.add(InternalRow$.MODULE$.empty());
      return relation(plan, row);
    }
    if (plan instanceof LocalRelation) return ((LocalRelation) plan).data().size() > most ? null : plan;
    return plan.getClass().getSimpleName().equals("ResolvedInlineTable") ? plan : null;
  }

  /** Pickled rows as Spark's, by the steps that createDataFrame takes too; null where there are more. */
  private static LogicalPlan unpickled(
      LogicalPlan plan, ParallelCollectionRDD source, SparkSession session, int most) {
    JavaRDD arrays = SerDeUtil.toJavaArray(SerDeUtil.pythonToJava(source.toJavaRDD(), true));
    Dataset typed = session.applySchemaToPythonRDD(arrays.rdd(), plan.schema());
    RDD rdd = ((LogicalRDD) typed.queryExecution().analyzed()).rdd();
    TaskContext context = TaskContext$.MODULE$.empty();
    ArrayList rows = new ArrayList();
    Partition[] parts = rdd.partitions();
    for (int i = 0; i < parts.length; i++) {
      Iterator found = rdd.iterator(parts[i], context);
      while (found.hasNext()) {
        if (rows.size() == most) return null;
        rows.add(((InternalRow) found.next()).copy());
      }
    }
    return relation(plan, rows);
  }

  /** The step of Python's over the pickled rows of a list, if all others are Spark's own; else null. */
  private static PythonRDD mapped(LogicalRDD plan) {
    if (plan.isStreaming()) return null;
    RDD at = plan.rdd();
    boolean first = true;
    while (at instanceof MapPartitionsRDD) {
      String site = at.getCreationSite();
      if (!isPlain(at) || !(first ? site.startsWith(WITH_SCHEMA) : site.indexOf(UNPICKLED) >= 0)) return null;
      at = parent(at);
      first = false;
    }
    if (first || !(at instanceof PythonRDD) || !isPlain(at)) return null;
    RDD source = parent(at);
    boolean ofList = source instanceof ParallelCollectionRDD && isPlain(source);
    return ofList && source.getCreationSite().startsWith(OF_LIST) ? (PythonRDD) at : null;
  }

  private static RDD parent(RDD rdd) { return ((Dependency) rdd.dependencies().apply(0)).rdd(); }

  private static boolean isPlain(RDD rdd) {
    return rdd.getStorageLevel().equals(StorageLevel.NONE()) && !rdd.isCheckpointed();
  }

  private static String command(PythonRDD rdd) throws Exception {
    Field function = PythonRDD.class.getDeclaredField("func");
    function.setAccessible(true);
    Seq command = ((PythonFunction) function.get(rdd)).command();
    byte[] bytes = new byte[command.size()];
    for (int i = 0; i < bytes.length; i++) bytes[i] = ((Byte) command.apply(i)).byteValue();
    return Base64.getEncoder().encodeToString(bytes);
  }

  private static LogicalPlan relation(LogicalPlan plan, List rows) {
    return new LocalRelation(plan.output(), CollectionConverters.asScala(rows).toSeq(), false, Option.empty());
  }
}
