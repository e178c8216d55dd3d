package penstock.sql;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Spark's own values as py4j hands them over: texts, numbers, lists, and times as {"micros": since 1970}. */
final class Values {
  static Object plain(Object value, DataType type) {
    if (value == null) return null;
    if (value instanceof UTF8String) return value.toString();
    if (type instanceof TimestampType) {
      LinkedHashMap time = new LinkedHashMap();
      time.put("micros", value);
      return time;
    }
    if (!(type instanceof ArrayType)) return value;
    ArrayList all = new ArrayList();
    DataType element = ((ArrayType) type).elementType();
    for (int i = 0; i < ((ArrayData) value).numElements(); i++) {
      all.add(plain(((ArrayData) value).get(i, element), element));
    }
    return all;
  }
}
