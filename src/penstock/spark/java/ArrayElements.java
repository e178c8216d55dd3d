package penstock;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** The elements of an array as a vector, where those of all arrays are not to be had: of vectors that are not Spark's. */
final class ArrayElements extends ColumnVector {
  private final ColumnarArray array;

  ArrayElements(ColumnarArray array) {
    super(null);
    this.array = array;
  }

  public void close() {}
  public boolean hasNull() { return true; } // some may be
  public int numNulls() { throw new UnsupportedOperationException(); }
  public boolean isNullAt(int row) { return array.isNullAt(row); }
  public boolean getBoolean(int row) { return array.getBoolean(row); }
  public byte getByte(int row) { return array.getByte(row); }
  public short getShort(int row) { return array.getShort(row); }
  public int getInt(int row) { return array.getInt(row); }
  public long getLong(int row) { return array.getLong(row); }
  public float getFloat(int row) { return array.getFloat(row); }
  public double getDouble(int row) { return array.getDouble(row); }
  public Decimal getDecimal(int row, int precision, int scale) { return array.getDecimal(row, precision, scale); }
  public UTF8String getUTF8String(int row) { return array.getUTF8String(row); }
  public byte[] getBinary(int row) { return array.getBinary(row); }
  public ColumnarArray getArray(int row) { return array.getArray(row); }
  public ColumnarMap getMap(int row) { return array.getMap(row); }
  public ColumnVector getChild(int place) { throw new UnsupportedOperationException(); }
}
