package penstock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedExtractValue;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.V2ExpressionUtils$;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/**
 * Columns that Python wrote as SQL, over the rows of a plan. Names mean the plan's columns, letter by letter, and functions
 * Spark's own: nothing that a user has defined or set in the session changes what the text says, but ANSI mode.
 */
public class Projection {
  // Of the session, since Spark's own functions ask for them; a parser's settings are as Spark has them by default.
  private static final String[] KEPT = {
    "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.timeType.enabled", "spark.sql.geospatial.enabled"
  };
  private static final Seq NONE = (Seq) scala.collection.immutable.Nil$.MODULE$;

  /** The plan with columns [[name, SQL], ...] alone; the plan itself where these are its own. */
  static LogicalPlan over(LogicalPlan plan, List columns, SQLConf session) {
    ArrayList all = new ArrayList();
    List output = output(plan);
    Map byName = byName(output);
    boolean same = columns.size() == output.size();
    SQLConf settings = null;
    for (int i = 0; i < columns.size(); i++) {
      String name = (String) ((List) columns.get(i)).get(0);
      String sql = (String) ((List) columns.get(i)).get(1);
      String plain = plainName(sql);
      if (plain == null && settings == null) settings = settings(session);
      Expression value = plain != null ? named(byName, plain) : parsed(sql, byName, settings);
      boolean own = plain != null && ((Attribute) value).name().equals(name);
      same = same && own && value == output.get(i);
      all.add(own ? value : alias(value, name));
    }
    return same ? plan : new Project(seq(all), plan);
  }

  /** The plan with its columns at places, under names: [[name, place], ...]. */
  static LogicalPlan placed(LogicalPlan plan, List columns) {
    ArrayList all = new ArrayList();
    List output = output(plan);
    Set seen = new HashSet();
    for (int i = 0; i < columns.size(); i++) {
      String name = (String) ((List) columns.get(i)).get(0);
      Object place = ((List) columns.get(i)).get(1);
      Attribute value = (Attribute) output.get(((Number) place).intValue());
      boolean own = value.name().equals(name) && seen.add(place);
      all.add(own ? value : alias(value, name));
    }
    return new Project(seq(all), plan);
  }

  /** The plan with functions in place of the columns that they are of, by the places of these. */
  static LogicalPlan applied(LogicalPlan plan, Map functions) {
    ArrayList all = new ArrayList();
    List output = output(plan);
    for (int i = 0; i < output.size(); i++) {
      Attribute value = (Attribute) output.get(i);
      ScalarFunction function = (ScalarFunction) functions.get(Integer.valueOf(i));
      all.add(function == null ? value : alias(V2ExpressionUtils$.MODULE$.resolveScalarFunction(
          function, seq(java.util.Collections.singletonList(value))), value.name()));
    }
    return new Project(seq(all), plan);
  }

  private static Expression alias(Expression value, String name) {
    return new Alias(value, name, NamedExpression$.MODULE$.newExprId(), NONE, Option.empty(), NONE);
  }

  private static SQLConf settings(SQLConf session) {
    SQLConf own = new SQLConf();
    for (int i = 0; i < KEPT.length; i++) {
      String value = session.getConfString(KEPT[i], null);
      if (value != null) own.setConfString(KEPT[i], value);
    }
    return own;
  }

  /** The name where SQL is but one in quotes: most columns are, and need no parser. */
  private static String plainName(String sql) {
    if (sql.length() < 3 || sql.charAt(0) != '`' || sql.charAt(sql.length() - 1) != '`') return null;
    String inner = sql.substring(1, sql.length() - 1);
    return inner.replace("``", "").indexOf('`') < 0 ? inner.replace("``", "`") : null;
  }

  /** The columns of a plan, once: Spark makes the list anew each time, and goes through it to find a place in it. */
  private static List output(LogicalPlan plan) {
    return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(plan.output()));
  }

  private static Map byName(List output) {
    Map found = new HashMap();
    for (int i = output.size() - 1; i >= 0; i--) found.put(((Attribute) output.get(i)).name(), output.get(i));
    return found;
  }

  private static Attribute named(Map byName, String name) {
    Attribute found = (Attribute) byName.get(name);
    if (found == null) throw new IllegalArgumentException("no column " + name + " in " + byName.keySet());
    return found;
  }

  private static Expression parsed(String sql, Map byName, SQLConf settings) {
    return (Expression) SQLConf$.MODULE$.withExistingConf(settings, new Parsing(sql, byName));
  }

  private static class Parsing extends AbstractFunction0 {
    final String sql;
    final Map byName;
    Parsing(String sql, Map byName) {
      this.sql = sql;
      this.byName = byName;
    }
    public Object apply() {
      Expression expression = (Expression) CatalystSqlParser$.MODULE$.parseExpression(sql);
      return expression.transformUp(new Resolved(byName));
    }
  }

  private static class Resolved extends AbstractPartialFunction {
    final Map byName;
    Resolved(Map byName) { this.byName = byName; }

    public boolean isDefinedAt(Object node) {
      return node instanceof UnresolvedAttribute || node instanceof UnresolvedFunction;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (node instanceof UnresolvedAttribute) return field(((UnresolvedAttribute) node).nameParts());
      if (!(node instanceof UnresolvedFunction)) return otherwise.apply(node);
      UnresolvedFunction call = (UnresolvedFunction) node;
      FunctionIdentifier name = new FunctionIdentifier((String) call.nameParts().apply(0));
      return FunctionRegistry$.MODULE$.builtin().lookupFunction(name, call.arguments());
    }

    private Expression field(Seq path) {
      Expression value = named(byName, (String) path.apply(0));
      for (int i = 1; i < path.size(); i++) value = new UnresolvedExtractValue(value, Literal$.MODULE$.apply(path.apply(i)));
      return value;
    }
  }

  static Seq seq(List list) { return scala.jdk.javaapi.CollectionConverters.asScala(list).toSeq(); }
}
