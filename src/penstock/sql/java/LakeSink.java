package penstock.sql;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;

/** Writes the batches of a stream to a lake's table: Python writes each of them once. */
public class LakeSink implements Sink {
  private final String lake;
  private final String sink;
  private final String description;

  LakeSink(Map told) {
    this.lake = (String) told.get("lake");
    this.sink = (String) told.get("sink");
    this.description = (String) told.get("description");
  }

  /** The batch was planned as a stream already: as Spark's foreachBatch does, its rows go on as a plain frame. */
  public void addBatch(long batch, Dataset data) {
    org.apache.spark.sql.classic.Dataset planned = (org.apache.spark.sql.classic.Dataset) data;
    SparkSession session = (SparkSession) planned.sparkSession();
    Dataset rows = session.internalCreateDataFrame(planned.queryExecution().toRdd(), planned.schema(), false);
    Lakes.answer(lake, new Object[] {"add_batch", sink, Long.valueOf(batch), rows});
  }

  public String toString() { return description; }
}
