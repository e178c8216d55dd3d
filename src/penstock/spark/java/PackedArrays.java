package penstock;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;

/**
 * Arrays that Python hands over as bytes, in the form in which Spark keeps arrays in its rows: see packed_arrays.py. What
 * Spark would do with each element of an array of Arrow's is done once a row.
 */
public class PackedArrays implements ScalarFunction, Serializable {
  private DataType type;

  /** The function that gives arrays of a type, which is told as JSON. */
  public PackedArrays of(String json) {
    PackedArrays made = new PackedArrays();
    made.type = DataType.fromJson(json);
    return made;
  }

  /** Spark calls it by this name. */
  public static ArrayData invoke(byte[] packed) {
    if (packed == null) return null;
    UnsafeArrayData array = new UnsafeArrayData();
    array.pointTo(packed, Platform.BYTE_ARRAY_OFFSET, packed.length);
    return array;
  }

  public DataType[] inputTypes() { return new DataType[] {DataTypes.BinaryType}; }
  public DataType resultType() { return type; }
  public String name() { return "unpacked"; }
  public String canonicalName() { return "penstock.unpacked(" + type.json() + ")"; }

  // Two reads of one table are one to Spark only where they are equal.
  public boolean equals(Object other) { return other instanceof PackedArrays && ((PackedArrays) other).type.equals(type); }
  public int hashCode() { return type.hashCode(); }
}
