package penstock;

import java.util.ArrayDeque;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNaN;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.Year;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Spark's filters as JSON for Python: what is not known here becomes ["unknown"], which never drops a file. */
public class FilterText {
  private static final String UNKNOWN = "[\"unknown\"]";
  private static final int DEEPEST = 100; // Python's parser of JSON and the databases' of SQL recurse

  /** `derived` names the columns that a scan computes from what is in the files, by the SQL of that computation. */
  public static String all(Seq filters, Map derived) { return all(filters, derived, null); }

  /** The same, and last the columns that are needed, where that is known. */
  public static String all(Seq filters, Map derived, Seq columns) {
    StringBuilder out = new StringBuilder("[");
    for (int i = 0; i < filters.size(); i++) {
      if (i > 0) out.append(",");
      out.append(of((Expression) filters.apply(i), derived, 0));
    }
    if (columns != null) {
      out.append(filters.isEmpty() ? "" : ",").append("[\"columns\"");
      for (int i = 0; i < columns.size(); i++) out.append(",").append(quoted(((AttributeReference) columns.apply(i)).name()));
      out.append("]");
    }
    return out.append("]").toString();
  }

  /** Whether a column itself, or a cast of one, is compared anywhere in a condition: if not, no text of it says a thing. */
  static boolean comparesColumns(Expression e) {
    Seq children = e.children();
    for (int i = 0; i < children.size(); i++) {
      Expression child = (Expression) children.apply(i);
      if (e.dataType() instanceof BooleanType && isColumn(child) || comparesColumns(child)) return true;
    }
    return isColumn(e) && e.dataType() instanceof BooleanType;
  }

  private static boolean isColumn(Expression e) {
    Expression at = e;
    while (at instanceof Cast || at instanceof Year || at instanceof GetStructField) at = (Expression) at.children().apply(0);
    return at instanceof AttributeReference;
  }

  /** One expression. */
  static String one(Expression e, Map derived) { return of(e, derived, 0); }

  /** Filters with one more, of a name and a text. */
  static String with(String filters, String name, String text) {
    String before = filters.substring(0, filters.length() - 1);
    return before + (before.length() > 1 ? "," : "") + "[" + quoted(name) + "," + quoted(text) + "]]";
  }

  private static String of(Expression e, Map derived, int depth) {
    if (depth > DEEPEST) return UNKNOWN;
    if (e instanceof And) return chain("and", And.class, e, derived, depth);
    if (e instanceof Or) return chain("or", Or.class, e, derived, depth);
    if (e instanceof Not) return call("not", e, derived, depth);
    Object name = derived.isEmpty() ? null : derived.get(e.sql());
    if (name != null) return "[\"column\"," + quoted((String) name) + "]";
    if (e instanceof EqualTo) return call("=", e, derived, depth);
    if (e instanceof EqualNullSafe) return call("<=>", e, derived, depth);
    if (e instanceof LessThan) return call("<", e, derived, depth);
    if (e instanceof LessThanOrEqual) return call("<=", e, derived, depth);
    if (e instanceof GreaterThan) return call(">", e, derived, depth);
    if (e instanceof GreaterThanOrEqual) return call(">=", e, derived, depth);
    if (e instanceof In) return call("in", e, derived, depth);
    if (e instanceof InSet) return inSet((InSet) e, derived, depth);
    if (e instanceof IsNull) return call("isnull", e, derived, depth);
    if (e instanceof IsNotNull) return call("isnotnull", e, derived, depth);
    if (e instanceof IsNaN) return call("isnan", e, derived, depth);
    if (e instanceof StartsWith) return call("startswith", e, derived, depth);
    if (e instanceof Year) return call("year", e, derived, depth);
    if (e instanceof Literal) return literal(((Literal) e).value(), e.dataType());
    if (e instanceof Cast) return cast((Cast) e, derived, depth);
    if (e instanceof AttributeReference || e instanceof GetStructField) return column(e);
    return UNKNOWN;
  }

  /** ANDs (or ORs) of ANDs as one, however deep they stand in one another. */
  private static String chain(String name, Class kind, Expression top, Map derived, int depth) {
    StringBuilder out = new StringBuilder("[").append(quoted(name));
    ArrayDeque ahead = new ArrayDeque();
    ahead.push(top);
    while (!ahead.isEmpty()) {
      Expression e = (Expression) ahead.pop();
      if (kind.isInstance(e)) {
        ahead.push(e.children().apply(1));
        ahead.push(e.children().apply(0));
      } else out.append(",").append(of(e, derived, depth + 1));
    }
    return out.append("]").toString();
  }

  private static String call(String name, Expression e, Map derived, int depth) {
    StringBuilder out = new StringBuilder("[").append(quoted(name));
    Seq children = e.children();
    for (int i = 0; i < children.size(); i++) {
      out.append(",").append(of((Expression) children.apply(i), derived, depth + 1));
    }
    return out.append("]").toString();
  }

  /** A cast, last with the time zone that Spark computes it in, where it has one: not that of the session by now. */
  private static String cast(Cast e, Map derived, int depth) {
    String zone = e.timeZoneId().isDefined() ? "," + quoted((String) e.timeZoneId().get()) : "";
    return "[\"cast\"," + quoted(e.dataType().simpleString()) + "," + of(e.child(), derived, depth + 1) + zone + "]";
  }

  private static String inSet(InSet e, Map derived, int depth) {
    StringBuilder out = new StringBuilder("[\"in\",").append(of(e.child(), derived, depth + 1));
    Iterator values = e.hset().iterator();
    while (values.hasNext()) out.append(",").append(literal(values.next(), e.child().dataType()));
    return out.append("]").toString();
  }

  private static String column(Expression e) {
    String path = "";
    Expression at = e;
    while (at instanceof GetStructField) {
      GetStructField field = (GetStructField) at;
      path = "," + quoted(field.childSchema().apply(field.ordinal()).name()) + path;
      at = field.child();
    }
    if (!(at instanceof AttributeReference)) return UNKNOWN;
    return "[\"column\"," + quoted(((AttributeReference) at).name()) + path + "]";
  }

  private static String literal(Object value, DataType type) {
    String text;
    if (value == null) text = "null";
    else if (value instanceof Boolean || value instanceof Byte || value instanceof Short) text = value.toString();
    else if (value instanceof Integer || value instanceof Long) text = value.toString();
    else if (value instanceof byte[]) text = quoted(hex((byte[]) value));
    else if (value instanceof org.apache.spark.sql.types.Decimal) {
      text = quoted(((org.apache.spark.sql.types.Decimal) value).toJavaBigDecimal().toPlainString());
    } else if (value instanceof Float || value instanceof Double) text = quoted(value.toString());
    else if (value instanceof org.apache.spark.unsafe.types.UTF8String) text = quoted(value.toString());
    else return UNKNOWN;
    return "[\"literal\"," + quoted(type.simpleString()) + "," + text + "]";
  }

  private static String hex(byte[] bytes) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < bytes.length; i++) {
      out.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
    }
    return out.toString();
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < ' ' || c > '~') {
        String digits = "000" + Integer.toHexString(c);
        out.append("\\u").append(digits.substring(digits.length() - 4));
      } else out.append(c);
    }
    return out.append('"').toString();
  }
}
