package penstock;

import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** The values of a column that are gathered, in the form of Arrow's; what a NULL's are, nobody looks at. */
abstract class ColumnBytes {
  private static final int BASE = Platform.BYTE_ARRAY_OFFSET;
  private static final int LARGE = 4194304; // bytes, of what is not kept for the next values

  byte[] values = new byte[64];
  int used;
  int nulls;
  private byte[] present; // a bit a row; none while nothing is NULL
  private int usedBefore;
  private int nullsBefore;
  int first; // row of the last that were added

  /** What is added from now on, `reset` takes back. */
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
    if ((long) used + (long) width() * count > most) used = -1;
    else fill(vector, from, count, some, most);
  }

  /** The bytes that each value takes; 0 where they differ. */
  abstract int width();
  abstract void fill(ColumnVector vector, int from, int count, boolean some, int most);

  private static byte[] all(int rows) {
    byte[] bits = new byte[(rows + 7) / 8];
    java.util.Arrays.fill(bits, (byte) -1);
    return bits;
  }

  /** Room for so many bytes more; the place of the first in memory. */
  long room(int bytes) {
    values = grown(values, (long) used + bytes);
    used += bytes;
    return BASE + used - bytes;
  }

  /** The bytes of all values so far. */
  long bytes() { return used; }

  /** How many columns it is told as: itself, and what its values are made of. */
  int columns() { return 1; }

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
    if (values.length > LARGE) values = new byte[64];
    present = null;
    nulls = used = 0;
    return end;
  }

  /** Gathers values of a type, or the digits of its decimals; null where it is none that goes as bytes. */
  static ColumnBytes of(DataType type, boolean digits) {
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
    if (type instanceof ArrayType) return Arrays.of(((ArrayType) type).elementType());
    return type instanceof BinaryType ? new Binaries() : null;
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

  private static class Booleans extends ColumnBytes {
    int width() { return 0; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      room((first + count + 7) / 8 - used);
      for (int i = 0; i < count; i++) {
        setBit(values, first + i, !(some && vector.isNullAt(from + i)) && vector.getBoolean(from + i));
      }
    }
  }

  private static class Bytes extends ColumnBytes {
    int width() { return 1; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putByte(values, at + i, vector.getByte(from + i));
      }
    }
  }

  private static class Shorts extends ColumnBytes {
    int width() { return 2; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(2 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putShort(values, at + 2L * i, vector.getShort(from + i));
      }
    }
  }

  private static class Ints extends ColumnBytes {
    int width() { return 4; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(4 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putInt(values, at + 4L * i, vector.getInt(from + i));
      }
    }
  }

  private static class Longs extends ColumnBytes {
    int width() { return 8; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(8 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putLong(values, at + 8L * i, vector.getLong(from + i));
      }
    }
  }

  private static class Floats extends ColumnBytes {
    int width() { return 4; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(4 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putFloat(values, at + 4L * i, vector.getFloat(from + i));
      }
    }
  }

  private static class Doubles extends ColumnBytes {
    int width() { return 8; }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      long at = room(8 * count);
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i))) Platform.putDouble(values, at + 8L * i, vector.getDouble(from + i));
      }
    }
  }

  /** Decimals of at most 18 digits as these; Spark's own vectors have no others, and no objects either. */
  private static class Digits extends ColumnBytes {
    private final int precision;
    private final int scale;

    Digits(int precision, int scale) {
      this.precision = precision;
      this.scale = scale;
    }

    int width() { return 8; }

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

  private static class Decimals extends ColumnBytes {
    private final int precision;
    private final int scale;

    Decimals(int precision, int scale) {
      this.precision = precision;
      this.scale = scale;
    }

    int width() { return 16; }

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
  private abstract static class Variable extends ColumnBytes {
    private byte[] ends = new byte[4];

    int width() { return 0; }
    int sizeOfOffsets(int rows) { return 4 * (rows + 1); }
    byte[] offsets() { return ends; }

    /** Where values end after so many of the rows that are added. */
    void end(int rows, int place) { Platform.putInt(ends, BASE + 4L * (first + rows), place); }

    void fill(ColumnVector vector, int from, int count, boolean some, int most) {
      ends = grown(ends, 4L * (first + count + 1));
      for (int i = 0; i < count; i++) {
        if (!(some && vector.isNullAt(from + i)) && !put(vector, from + i, most)) {
          used = -1;
          return;
        }
        end(i + 1, used);
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

  /** Arrays of values that are no arrays themselves: where each ends, and the elements of all. */
  private static class Arrays extends Variable {
    private final ColumnBytes elements;
    private int count;
    private int countBefore;

    private Arrays(ColumnBytes elements) { this.elements = elements; }

    static ColumnBytes of(DataType element) {
      ColumnBytes elements = element instanceof ArrayType ? null : ColumnBytes.of(element, false);
      return elements == null ? null : new Arrays(elements);
    }

    long bytes() { return elements.bytes(); }
    int columns() { return 1 + elements.columns(); }

    void mark(int rows) {
      super.mark(rows);
      elements.mark(countBefore = count);
    }

    void reset() {
      super.reset();
      elements.reset();
      count = countBefore;
    }

    boolean put(ColumnVector vector, int row, int most) {
      ColumnarArray array = vector.getArray(row);
      return vector instanceof WritableColumnVector
          ? put(((WritableColumnVector) vector).arrayData(), ((WritableColumnVector) vector).getArrayOffset(row),
              array.numElements(), most)
          : put(new ArrayElements(array), 0, array.numElements(), most);
    }

    private boolean put(ColumnVector vector, int from, int length, int most) {
      elements.first = count;
      elements.add(vector, from, length, most);
      count += length;
      return elements.used >= 0;
    }

    void end(int rows, int place) { super.end(rows, count); }

    long size(int rows) { return super.size(rows) + elements.size(count); }

    int copy(byte[] target, int told, int place, int rows) {
      int end = elements.copy(target, told + 32, super.copy(target, told, place, rows), count);
      count = 0;
      return end;
    }
  }
}
