package penstock;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.roaringbitmap.longlong.Roaring64NavigableMap;
import scala.Option;
import scala.runtime.AbstractFunction0;

/**
 * Tells where the rows of a query are, of which each is a file, or NULL, and a position there: bitmaps by file, made by
 * the tasks that find the rows, so that no Python has to start for them.
 */
public class FoundRows implements FlatMapFunction {
  private static final long NO_FILE = Long.MIN_VALUE;

  /** What the tasks have found, as spark/found_rows.py reads it: in one text, of which Python makes bytes the fastest. */
  public String find(final QueryExecution query) throws IOException {
    List told = (List) SQLExecution$.MODULE$.withNewExecutionId(
        query, Option.apply("find rows"), new AbstractFunction0() {
          public Object apply() {
            return query.toRdd().toJavaRDD().mapPartitions(new FoundRows()).collect();
          }
        });
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int i = 0; i < told.size(); i++) all.write((byte[]) told.get(i));
    return Base64.getEncoder().encodeToString(all.toByteArray());
  }

  public Iterator call(Object given) throws IOException {
    Iterator rows = (Iterator) given;
    Map found = new TreeMap();
    long current = NO_FILE;
    Roaring64NavigableMap positions = null;
    while (rows.hasNext()) {
      InternalRow row = (InternalRow) rows.next();
      long file = row.isNullAt(0) ? NO_FILE : row.getLong(0);
      if (positions == null || file != current) {
        positions = (Roaring64NavigableMap) found.get(Long.valueOf(file));
        if (positions == null) {
          positions = new Roaring64NavigableMap();
          found.put(Long.valueOf(file), positions);
        }
        current = file;
      }
      positions.addLong(row.getLong(1));
    }
    return found.isEmpty() ? Collections.emptyIterator() : Collections.singletonList(written(found)).iterator();
  }

  private static byte[] written(Map found) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(all);
    for (Iterator each = found.entrySet().iterator(); each.hasNext();) {
      Map.Entry entry = (Map.Entry) each.next();
      Roaring64NavigableMap positions = (Roaring64NavigableMap) entry.getValue();
      positions.runOptimize();
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      positions.serializePortable(new DataOutputStream(bytes));
      out.writeLong(((Long) entry.getKey()).longValue());
      out.writeInt(bytes.size());
      bytes.writeTo(out);
    }
    return all.toByteArray();
  }
}
