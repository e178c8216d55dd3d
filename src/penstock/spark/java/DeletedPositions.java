package penstock;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.net.URI;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;
import org.roaringbitmap.RoaringBitmap;
import org.roaringbitmap.RoaringBitmapWriter;
import scala.Function1;

/**
 * Finds the deleted positions of data files, on executors: from what the index says of a file, in lines as
 * spark/deleted_rows.py writes them. An executor keeps what it has read: a delete file stays as it is, and its name its own.
 */
class DeletedPositions implements Serializable {
  private static final long MOST_POSITIONS = 1L << 32;
  private static final long MOST_KEPT = 64L << 20;  // bytes
  private static final Map KEPT = new LinkedHashMap(16, 0.75f, true);
  private static long kept = 0;

  private final Function1 parquet;
  private final Broadcast hadoop;

  /** `parquet` reads positions, and the snapshots that deleted them, out of a file; `hadoop` are the scan's settings. */
  DeletedPositions(Function1 parquet, Broadcast hadoop) {
    this.parquet = parquet;
    this.hadoop = hadoop;
  }

  RoaringBitmap of(String told) throws Exception {
    synchronized (KEPT) {
      RoaringBitmap found = (RoaringBitmap) KEPT.get(told);
      if (found != null) return found;
    }
    RoaringBitmap read = read(told);
    keep(told, read);
    return read;
  }

  private static void keep(String key, RoaringBitmap positions) {
    synchronized (KEPT) {
      if (KEPT.put(key, positions) == null) kept += size(key, positions);
      Iterator eldest = KEPT.entrySet().iterator();
      while (kept > MOST_KEPT && eldest.hasNext()) {
        Map.Entry entry = (Map.Entry) eldest.next();
        kept -= size((String) entry.getKey(), (RoaringBitmap) entry.getValue());
        eldest.remove();
      }
    }
  }

  private static long size(String key, RoaringBitmap positions) {
    return 2L * key.length() + positions.getLongSizeInBytes();
  }

  private RoaringBitmap read(String told) throws Exception {
    RoaringBitmap all = new RoaringBitmap();
    String[] lines = told.split("\n");
    for (int i = 0; i < lines.length; i++) {
      String[] part = lines[i].split(" ");
      if (part[0].equals("inlined")) all.or(DeletionVector.decode(Base64.getDecoder().decode(part[1])));
      else readFile(part[0], part[1], Long.parseLong(part[2]), Long.parseLong(part[3]), all);
    }
    all.runOptimize();
    return all;
  }

  private void readFile(String format, String uri, long size, long last, RoaringBitmap all) throws Exception {
    try {
      if (format.equals("parquet")) readParquet(uri, size, last, all);
      else if (format.equals("puffin")) all.or(DeletionVector.decode(bytes(uri, size)));
      else throw new IOException("its format is not known: " + format);
    } catch (Exception e) {
      throw new IOException("the delete file " + uri + " cannot be read: " + e.getMessage(), e);
    }
  }

  /** Positions in any order, also more than once; not those of snapshots after the last that counts. */
  private void readParquet(String uri, long size, long last, RoaringBitmap all) throws Exception {
    PartitionedFile file = new PartitionedFile(
        InternalRow.empty(), SparkPath.fromUri(URI.create(uri)), 0L, size, new String[0], 0L, size,
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
    Object rows = parquet.apply(file);
    RoaringBitmapWriter found = (RoaringBitmapWriter) RoaringBitmapWriter.writer().get();  // fast where they are in order
    try {
      scala.collection.Iterator each = (scala.collection.Iterator) rows;
      while (each.hasNext()) {
        Object next = each.next();
        if (next instanceof ColumnarBatch) addAll((ColumnarBatch) next, last, found);
        else add((InternalRow) next, last, found);
      }
    } finally {
      if (rows instanceof Closeable) ((Closeable) rows).close();
    }
    all.or((RoaringBitmap) found.get());
  }

  private static void addAll(ColumnarBatch batch, long last, RoaringBitmapWriter found) throws IOException {
    ColumnVector positions = batch.column(0);
    ColumnVector snapshots = batch.column(1);
    for (int i = 0; i < batch.numRows(); i++) {
      if (positions.isNullAt(i) || (!snapshots.isNullAt(i) && snapshots.getLong(i) > last)) continue;
      add(positions.getLong(i), found);
    }
  }

  private static void add(InternalRow row, long last, RoaringBitmapWriter found) throws IOException {
    if (row.isNullAt(0) || (!row.isNullAt(1) && row.getLong(1) > last)) return;
    add(row.getLong(0), found);
  }

  private static void add(long position, RoaringBitmapWriter found) throws IOException {
    if (position < 0 || position >= MOST_POSITIONS) throw new IOException("no file has a row " + position);
    found.add((int) position);
  }

  private byte[] bytes(String uri, long size) throws IOException {
    Path path = new Path(URI.create(uri));
    KnownFile.set(path, size);
    try {
      InputStream in = path.getFileSystem(((SerializableConfiguration) hadoop.value()).value()).open(path);
      try {
        return in.readAllBytes();
      } finally {
        in.close();
      }
    } finally {
      KnownFile.forget();
    }
  }
}
