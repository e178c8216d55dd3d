package penstock;

import java.io.Serializable;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * Hands rows to Python as bytes in the form of Arrow's columns, where Spark reads them as columns: see packed_columns.py.
 * Spark would make a row of each, and columns of the rows, value by value.
 */
public class PackedColumns implements FlatMapFunction, Serializable {
  private static final int ENOUGH_ROWS = 32768; // in one piece: with few, Arrow's writer of Parquet takes longer
  private static final int ENOUGH_BYTES = 8388608;
  private static final int MOST_BYTES = 67108864; // but for a single row
  private static final int BASE = Platform.BYTE_ARRAY_OFFSET;

  private int[] places; // of the columns, in the batches
  private DataType[] types; // there
  private boolean[] digits; // whether a decimal goes as the long of its digits

  /** The rows of a query in a session, a binary value for many of them; null where its plan has no columns to give. */
  public Dataset of(Dataset rows, SparkSession session) {
    SparkPlan plan = rows.queryExecution().executedPlan();
    Seq output = plan.output();
    ExprId[] wanted = new ExprId[output.size()];
    PackedColumns packing = new PackedColumns();
    packing.places = new int[wanted.length];
    packing.types = new DataType[wanted.length];
    packing.digits = new boolean[wanted.length];
    for (int i = 0; i < wanted.length; i++) wanted[i] = ((NamedExpression) output.apply(i)).exprId();
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
    return session.internalCreateDataFrame(packed.rdd(), new StructType().add("rows", DataTypes.BinaryType, false), false);
  }

  /** Goes from the columns of a projection to those below it; false where one is computed. */
  private boolean follow(ExprId[] wanted, Seq projected) {
    for (int i = 0; i < wanted.length; i++) {
      Expression found = null;
      for (int j = 0; j < projected.size() && found == null; j++) {
        if (((NamedExpression) projected.apply(j)).exprId().equals(wanted[i])) found = (Expression) projected.apply(j);
      }
      if (found instanceof Alias) found = ((Alias) found).child();
      if (found instanceof UnscaledValue && !digits[i]) {
        digits[i] = true;
        found = ((UnscaledValue) found).child();
      }
      if (!(found instanceof AttributeReference)) return false;
      wanted[i] = ((AttributeReference) found).exprId();
    }
    return true;
  }

  private boolean take(ExprId[] wanted, Seq columns) {
    for (int i = 0; i < wanted.length; i++) {
      places[i] = -1;
      for (int j = 0; j < columns.size(); j++) {
        AttributeReference column = (AttributeReference) columns.apply(j);
        if (!column.exprId().equals(wanted[i])) continue;
        places[i] = j;
        types[i] = column.dataType();
      }
      if (places[i] < 0 || column(types[i], digits[i]) == null) return false;
    }
    return true;
  }

  public Iterator call(Object batches) { return new Pieces((Iterator) batches, this); }

  private static Column column(DataType type, boolean digits) {
    if (digits) return new Digits(((DecimalType) type).precision(), ((DecimalType) type).scale());
    if (type instanceof DecimalType) return new Decimals(((DecimalType) type).precision(), ((DecimalType) type).scale());
    if (type instanceof BooleanType) return new Booleans();
    if (type instanceof ByteType) return new Bytes();
    if (type instanceof ShortType) return new Shorts();
    if (type instanceof IntegerType || type instanceof DateType) return new Ints();
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) return new Longs();
    if (type instanceof FloatType) return new Floats();
    if (type instanceof DoubleType) return new Doubles();
    if (type instanceof StringType) return new Texts();
    return type instanceof BinaryType ? new Binaries() : null;
  }

  /** Gathers batches until they are enough. */
  private static class Pieces implements Iterator {
    private final Iterator batches;
    private final int[] places;
    private final Column[] columns;
    private ColumnarBatch batch; // and where its next row is
    private int next;
    private int rows;

    Pieces(Iterator batches, PackedColumns packing) {
      this.batches = batches;
      this.places = packing.places;
      this.columns = new Column[places.length];
      for (int i = 0; i < columns.length; i++) columns[i] = column(packing.types[i], packing.digits[i]);
    }

    /** Whether there is a row that is not gathered yet. */
    private boolean finds() {
      while ((batch == null || next == batch.numRows()) && batches.hasNext()) {
        batch = (ColumnarBatch) batches.next();
        next = 0;
      }
      return batch != null && next < batch.numRows();
    }

    public boolean hasNext() { return finds(); }

    public Object next() {
      if (!finds()) throw new NoSuchElementException();
      while (rows < ENOUGH_ROWS && bytes() < ENOUGH_BYTES && finds()) {
        int count = batch.numRows() - next;
        while (!added(count)) count = (count + 1) / 2;
        next += count;
        rows += count;
      }
      return new GenericInternalRow(new Object[] {piece()});
    }

    public void remove() { throw new UnsupportedOperationException(); }

    private long bytes() {
      long sum = 0;
      for (int i = 0; i < columns.length; i++) sum += columns[i].used;
      return sum;
    }

    /** Adds some rows; or none, if they are too wide for all of them to go into this piece. */
    private boolean added(int count) {
      for (int i = 0; i < columns.length; i++) {
        columns[i].mark(rows);
        columns[i].add(batch.column(places[i]), next, count, count > 1 ? MOST_BYTES : Integer.MAX_VALUE);
        boolean tooWide = columns[i].used < 0 || count > 1 && bytes() > MOST_BYTES;
        if (!tooWide) continue;
        for (int j = 0; j <= i; j++) columns[j].reset();
        return false;
      }
      return true;
    }

    /** Numbers: of rows; then of each column the NULLs and the sizes of its three buffers; then these, in words. */
    private byte[] piece() {
      long size = 8 + 32L * columns.length;
      for (int i = 0; i < columns.length; i++) size += columns[i].size(rows);
      byte[] made = new byte[Math.toIntExact(size)];
      Platform.putLong(made, BASE, rows);
      int place = 8 + 32 * columns.length;
      for (int i = 0; i < columns.length; i++) place = columns[i].copy(made, BASE + 8 + 32 * i, place, rows);
      rows = 0;
      return made;
    }
  }

  private static int words(int bytes) { return (bytes + 7) & ~7; }

  private static byte[] grown(byte[] bytes, long needed) {
    if (needed <= bytes.length) return bytes;
    long size = Math.max(needed, Math.min(2L * bytes.length, Integer.MAX_VALUE - 64));
    return java.util.Arrays.copyOf(bytes, Math.toIntExact(size));
  }

  private static void setBit(byte[] bits, int place, boolean on) {
    int mask = 1 << (place & 7);
    if (on) bits[place >> 3] |= mask;
    else bits[place >> 3] &= ~mask;
  }

  /** The values of a column that are gathered; what a NULL's are, nobody looks at. */
  private abstract static class Column {
    byte[] values = new byte[64];
    int used;
    int nulls;
    private byte[] present; // a bit a row; none while nothing is NULL
    private int usedBefore;
    private int nullsBefore;
    int first; // row of the last that were added

    void mark(int rows) {
      usedBefore = used;
      nullsBefore = nulls;
      first = rows;
    }

    void reset() {
      used = usedBefore;
      nulls = nullsBefore;
    }

    /** Adds rows of a vector. If the values would then have more bytes than `most`, `used` is negative. */
    void add(ColumnVector vector, int from, int count, int most) {
      boolean some = vector.hasNull();
      if (some || present != null) {
        if (present == null) present = all(first);
        present = grown(present, (first + count + 7) / 8);
        for (int i = 0; i < count; i++) {
          boolean there = !some || !vector.isNullAt(from + i);
          setBit(present, first + i, there);
          if (!there) nulls++;
        }
      }
      fill(vector, from, count, some, most);
    }

    abstract void fill(ColumnVector vector, int from, int count, boolean some, int most);

    private static byte[] all(int rows) {
      byte[] bits = new byte[ENOUGH_ROWS / 8];
      java.util.Arrays.fill(bits, 0, (rows + 7) / 8, (byte) -1);
      return bits;
    }

    /** Room for so many bytes more; the place of the first in memory. */
    long room(int bytes) {
      values = grown(values, (long) used + bytes);
      used += bytes;
      return BASE + used - bytes;
    }

    int sizeOfOffsets(int rows) { return 0; }
    byte[] offsets() { return values; }

    private int sizeOfBits(int rows) { return nulls == 0 ? 0 : (rows + 7) / 8; }

    long size(int rows) { return (long) words(sizeOfBits(rows)) + words(sizeOfOffsets(rows)) + words(used); }

    /** Copies the column to a place, told at another one; the place after it. The column is empty then. */
    int copy(byte[] target, int told, int place, int rows) {
      int bits = sizeOfBits(rows), places = sizeOfOffsets(rows);
      Platform.putLong(target, told, nulls);
      Platform.putLong(target, told + 8, bits);
      Platform.putLong(target, told + 16, places);
      Platform.putLong(target, told + 24, used);
      if (bits > 0) System.arraycopy(present, 0, target, place, bits);
      System.arraycopy(offsets(), 0, target, place + words(bits), places);
      System.arraycopy(values, 0, target, place + words(bits) + words(places), used);
      int end = place + words(bits) + words(places) + words(used);
      present = null;
      nulls = used = 0;
      return end;
    }
  }

  private static class Booleans extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      room((first + count + 7) / 8 - used);
      for (int i = 0; i < count; i++) {
        setBit(values, first + i, !(some && vector.isNullAt(from + i)) && vector.getBoolean(from + i));
      }
    }
  }

  private static class Bytes extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putByte(values, at + i, vector.getByte(from + i));
      }
    }
  }

  private static class Shorts extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(2 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putShort(values, at + 2L * i, vector.getShort(from + i));
      }
    }
  }

  private static class Ints extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(4 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putInt(values, at + 4L * i, vector.getInt(from + i));
      }
    }
  }

  private static class Longs extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(8 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putLong(values, at + 8L * i, vector.getLong(from + i));
      }
    }
  }

  private static class Floats extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(4 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putFloat(values, at + 4L * i, vector.getFloat(from + i));
      }
    }
  }

  private static class Doubles extends Column {
    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(8 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putDouble(values, at + 8L * i, vector.getDouble(from + i));
      }
    }
  }

  /** Decimals of at most 18 digits as these; Spark's own vectors have no others, and no objects either. */
  private static class Digits extends Column {
    private final int precision;
    private final int scale;

    Digits(int precision, int scale) {
      this.precision = precision;
      this.scale = scale;
    }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(8 * count);
      boolean own = vector instanceof WritableColumnVector;
      boolean ints = own && precision <= Decimal.MAX_INT_DIGITS();
      for (int i = 0; i < count; i++) {
        int row = from + i;
        if (some && vector.isNullAt(row)) continue;
        long digits = ints ? vector.getInt(row)
            : own ? vector.getLong(row) : vector.getDecimal(row, precision, scale).toUnscaledLong();
        Platform.putLong(values, at + 8L * i, digits);
      }
    }
  }

  private static class Decimals extends Column {
    private final int precision;
    private final int scale;

    Decimals(int precision, int scale) {
      this.precision = precision;
      this.scale = scale;
    }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(16 * count);
      for (int i = 0; i < count; i++) {
        if (some && vector.isNullAt(from + i)) continue;
        java.math.BigInteger digits =
            vector.getDecimal(from + i, precision, scale).toJavaBigDecimal().setScale(scale).unscaledValue();
        Platform.putLong(values, at + 16L * i, digits.longValue());
        Platform.putLong(values, at + 16L * i + 8, digits.shiftRight(64).longValue());
      }
    }
  }

  /** Values of any length, and where each ends. */
  private abstract static class Variable extends Column {
    private byte[] ends = new byte[4 * (ENOUGH_ROWS + 1)];

    int sizeOfOffsets(int rows) { return 4 * (rows + 1); }
    byte[] offsets() { return ends; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      ends = grown(ends, 4L * (first + count + 1));
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i)) && !put(vector, from + i, most)) {
          used = -1;
          return;
        }
        Platform.putInt(ends, BASE + 4L * (first + i + 1), used);
      }
    }

    /** Adds a value; false if it is too much. */
    abstract boolean put(ColumnVector vector, int row, int most);

    boolean put(byte[] bytes, int first, int length, int most) {
      if ((long) used + length > most) return false;
      room(length);
      System.arraycopy(bytes, first, values, used - length, length);
      return true;
    }
  }

  private static class Texts extends Variable {
    private static final int FEW = 256;
    private final byte[][] known = new byte[FEW][]; // texts of a dictionary: Spark makes each anew for each row
    private WritableColumnVector ids;

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      boolean coded = vector instanceof WritableColumnVector && ((WritableColumnVector) vector).hasDictionary();
      ids = coded ? ((WritableColumnVector) vector).getDictionaryIds() : null;
      if (coded) java.util.Arrays.fill(known, null); // the vector may have another dictionary than before
      super.fill(vector, from, count, some, most);
    }

    boolean put(ColumnVector vector, int row, int most) {
      int id = ids == null ? FEW : ids.getDictId(row);
      if (id >= FEW) return put(vector.getUTF8String(row), most);
      if (known[id] == null) known[id] = vector.getUTF8String(row).getBytes();
      return put(known[id], 0, known[id].length, most);
    }

    private boolean put(UTF8String text, int most) {
      Object base = text.getBaseObject();
      if (!(base instanceof byte[])) return put(text.getBytes(), 0, text.numBytes(), most);
      return put((byte[]) base, (int) (text.getBaseOffset() - BASE), text.numBytes(), most);
    }
  }

  private static class Binaries extends Variable {
    boolean put(ColumnVector vector, int row, int most) {
      byte[] bytes = vector.getBinary(row);
      return put(bytes, 0, bytes.length, most);
    }
  }
}
