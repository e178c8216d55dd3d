package penstock;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Seq;

/**
 * Hands rows to Python as bytes in the form of Arrow's columns, where Spark reads them as columns: see packed_columns.py.
 * Spark would make a row of each, and columns of the rows, value by value.
 */
public class PackedColumns implements FlatMapFunction, Serializable {
  private static final int ENOUGH_ROWS = 32768; // in one piece: with few, Arrow's writer of Parquet takes longer
  private static final int ENOUGH_BYTES = 8388608;
  private static final int MOST_BYTES = 16777216; // but for a single row: a piece is in memory several times
  private static final int BASE = Platform.BYTE_ARRAY_OFFSET;

  private int[] places; // of the columns, in the batches
  private DataType[] types; // there
  private boolean[] digits; // whether a decimal goes as the long of its digits

  /** The rows of a query, a binary value for many of them; null where its plan has no columns to give. */
  public Dataset of(Dataset rows) {
    SparkPlan plan = rows.queryExecution().executedPlan();
    Seq output = plan.output();
    ExprId[] wanted = new ExprId[output.size()];
    PackedColumns packing = new PackedColumns();
    packing.places = new int[wanted.length];
    packing.types = new DataType[wanted.length];
    packing.digits = new boolean[wanted.length];
    scala.collection.Iterator columns = output.iterator();
    for (int i = 0; i < wanted.length; i++) wanted[i] = ((NamedExpression) columns.next()).exprId();
    int tasks = 0;
    while (!(plan instanceof ColumnarToRowExec)) {
      if (plan instanceof ProjectExec) {
        if (!packing.follow(wanted, ((ProjectExec) plan).projectList())) return null;
      } else if (plan instanceof CoalesceExec && tasks == 0) {
        tasks = ((CoalesceExec) plan).numPartitions();
      } else if (!(plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter)) return null;
      plan = (SparkPlan) plan.children().head();
    }
    SparkPlan source = (SparkPlan) plan.children().head();
    if (!packing.take(wanted, source.output())) return null;
    JavaRDD packed = ((RDD) source.executeColumnar()).toJavaRDD().mapPartitions(packing);
    if (tasks > 0) packed = packed.coalesce(tasks);
    StructType schema = new StructType().add("rows", DataTypes.BinaryType, false);
    return rows.sparkSession().internalCreateDataFrame(packed.rdd(), schema, false);
  }

  /** Goes from the columns of a projection to those below it; false where one is computed. */
  private boolean follow(ExprId[] wanted, Seq projected) {
    HashMap found = byId(projected);
    for (int i = 0; i < wanted.length; i++) {
      Object column = found.get(wanted[i]);
      if (column instanceof Alias) column = ((Alias) column).child();
      if (column instanceof UnscaledValue && !digits[i]) {
        digits[i] = true;
        column = ((UnscaledValue) column).child();
      }
      if (!(column instanceof AttributeReference)) return false;
      wanted[i] = ((AttributeReference) column).exprId();
    }
    return true;
  }

  private boolean take(ExprId[] wanted, Seq columns) {
    HashMap numbers = new HashMap();
    ArrayList all = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(columns));
    for (int i = 0; i < all.size(); i++) numbers.put(((Attribute) all.get(i)).exprId(), Integer.valueOf(i));
    for (int i = 0; i < wanted.length; i++) {
      Integer place = (Integer) numbers.get(wanted[i]);
      if (place == null) return false;
      places[i] = place.intValue();
      types[i] = ((Attribute) all.get(places[i])).dataType();
      if (ColumnBytes.of(types[i], digits[i]) == null) return false;
    }
    return true;
  }

  /** Columns by their ids: there may be thousands. */
  private static HashMap byId(Seq columns) {
    HashMap found = new HashMap();
    for (scala.collection.Iterator all = columns.iterator(); all.hasNext();) {
      NamedExpression one = (NamedExpression) all.next();
      found.put(one.exprId(), one);
    }
    return found;
  }

  public Iterator call(Object batches) { return new Pieces((Iterator) batches, this); }

  /** Gathers batches until they are enough. */
  private static class Pieces implements Iterator {
    private final Iterator batches;
    private final int[] places;
    private final ColumnBytes[] columns;
    private int told; // columns, with those that others are made of
    private ColumnarBatch batch; // and where its next row is
    private int next;
    private int rows;
    private int fitting = Integer.MAX_VALUE; // rows that were not too many of those before

    Pieces(Iterator batches, PackedColumns packing) {
      this.batches = batches;
      this.places = packing.places;
      this.columns = new ColumnBytes[places.length];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = ColumnBytes.of(packing.types[i], packing.digits[i]);
        told += columns[i].columns();
      }
    }

    /** Whether there is a row that is not gathered yet. */
    private boolean finds() {
      while (batch == null || next == batch.numRows()) {
        if (batch != null) batch.closeIfFreeable(); // as Spark does where it makes rows
        batch = null;
        if (!batches.hasNext()) return false;
        batch = (ColumnarBatch) batches.next();
        next = 0;
      }
      return true;
    }

    public boolean hasNext() { return finds(); }

    public Object next() {
      if (!finds()) throw new NoSuchElementException();
      while (rows < ENOUGH_ROWS && bytes() < ENOUGH_BYTES && finds()) {
        int asked = (int) Math.min(batch.numRows() - next, 2L * fitting), count = asked;
        while (count > 0 && !added(count)) count /= 2;
        if (count == 0 && rows == 0) throw new UnsupportedOperationException("a value of more than 2 GB cannot be written");
        if (count == 0) break;
        if (count < asked || count > fitting) fitting = count;
        next += count;
        rows += count;
      }
      return new GenericInternalRow(new Object[] {piece()});
    }

    public void remove() { throw new UnsupportedOperationException(); }

    private long bytes() {
      long sum = 0;
      for (int i = 0; i < columns.length; i++) sum += columns[i].bytes();
      return sum;
    }

    /** Adds some rows; or none, if they are too wide for all of them to go into this piece. */
    private boolean added(int count) {
      long sum = bytes();
      for (int i = 0; i < columns.length; i++) {
        columns[i].mark(rows);
        sum -= columns[i].bytes();
        columns[i].add(batch.column(places[i]), next, count, count > 1 ? MOST_BYTES : Integer.MAX_VALUE);
        sum += columns[i].bytes();
        boolean tooWide = columns[i].used < 0 || count > 1 && sum > MOST_BYTES;
        if (!tooWide) continue;
        for (int j = 0; j <= i; j++) columns[j].reset();
        return false;
      }
      return true;
    }

    /** Numbers: of rows; then of each column the NULLs and the sizes of its three buffers; then these, in words. */
    private byte[] piece() {
      long size = 8 + 32L * told;
      for (int i = 0; i < columns.length; i++) size += columns[i].size(rows);
      byte[] made = new byte[Math.toIntExact(size)];
      Platform.putLong(made, BASE, rows);
      int number = BASE + 8, place = 8 + 32 * told;
      for (int i = 0; i < columns.length; i++) {
        place = columns[i].copy(made, number, place, rows);
        number += 32 * columns[i].columns();
      }
      rows = 0;
      return made;
    }
  }
}
