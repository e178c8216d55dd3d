package penstock.sql;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A lake's table as a stream: its offsets are Python's, and so is the plan of each batch, which Spark runs natively. */
public class LakeSource implements Source, SupportsTriggerAvailableNow {
  private static final List LOADED = new ArrayList(); // [weak reference to a DataSource's options, its stream]
  private final String lake;
  private final String stream;
  private final StructType schema;
  private final String description; // Spark prints it when it stops, when Python may be gone

  LakeSource(Map told) {
    this.lake = (String) told.get("lake");
    this.schema = Lakes.schema((String) told.get("schema"));
    this.description = (String) told.get("description");
    this.stream = (String) Lakes.answer(lake, new Object[] {"open_stream", told.get("stream")});
  }

  /**
   * Spark asks for a stream's columns when it is loaded and for the source when it starts, and gives both times the same
   * object: so a stream keeps the columns that it was loaded with.
   */
  static synchronized void remember(Object options, Map told) {
    for (Iterator all = LOADED.iterator(); all.hasNext();) {
      Object known = ((WeakReference) ((Object[]) all.next())[0]).get();
      if (known == null || known == options) all.remove();
    }
    LOADED.add(new Object[] {new WeakReference(options), told});
  }

  static synchronized Map remembered(Object options) {
    for (int i = 0; i < LOADED.size(); i++) {
      Object[] one = (Object[]) LOADED.get(i);
      if (((WeakReference) one[0]).get() == options) return (Map) one[1];
    }
    return null;
  }

  private Object ask(String verb, Object a, Object b) {
    return Lakes.answer(lake, new Object[] {verb, stream, a, b});
  }
  private static Told told(Object json) { return json == null ? null : new Told((String) json); }
  private static String json(org.apache.spark.sql.connector.read.streaming.Offset offset) {
    return offset == null ? null : offset.json();
  }

  public StructType schema() { return schema; }
  public Option getOffset() { throw new UnsupportedOperationException("latestOffset tells"); }

  /** Not all that there is, which is what Trigger.Once asks for in its place. */
  public ReadLimit getDefaultReadLimit() { return ReadLimit.maxRows(Long.MAX_VALUE); }

  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    return told(ask("latest_offset", json(start), Boolean.valueOf(limit instanceof ReadAllAvailable)));
  }
  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    return told(ask("newest_offset", null, null));
  }
  public void prepareForTriggerAvailableNow() { ask("prepare_available_now", null, null); }

  public Dataset getBatch(Option start, Offset end) {
    String from = start.isEmpty() ? null : ((Offset) start.get()).json();
    return asStream((Dataset) ask("batch", from, end.json()));
  }

  /**
   * Spark wants a plan with a streaming leaf. One beside the batch's own plan, without partitions, marks its top only:
   * joins inside stay plain joins, filters and columns still go down. (A LocalRelation would be optimized away.)
   */
  private static Dataset asStream(Dataset batch) {
    SparkSession session = (SparkSession) batch.sparkSession();
    RDD nothing = session.sparkContext().emptyRDD(scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class));
    return batch.union(session.internalCreateDataFrame(nothing, batch.schema(), true));
  }

  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    throw new UnsupportedOperationException("latestOffset tells");
  }
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) { return told(json); }
  public void commit(Offset end) { ask("commit_offset", end.json(), null); }
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) { ask("commit_offset", end.json(), null); }
  public void stop() {
    try {
      ask("stop_stream", null, null);
    } catch (Throwable e) {
      // the lake was closed, or Python is gone
    }
  }
  public String toString() { return description; }

  /** An offset; those of an earlier run come as Spark's own, and all that counts is their text. */
  public static class Told extends Offset {
    private final String json;
    Told(String json) { this.json = json; }
    public String json() { return json; }
  }
}
