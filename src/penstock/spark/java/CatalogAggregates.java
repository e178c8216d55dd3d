package penstock;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Greatest;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.Least;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Optimizer rule: count, min and max over all rows of a table, as far as Python knows them from the catalog. What it does
 * not know is left to a scan of the files that are left, and both are put together: count(c) becomes count(c) + 17.
 */
public class CatalogAggregates extends Rule {
  private static final Seq NONE = (Seq) scala.collection.immutable.Nil$.MODULE$;
  private static final TreeNodeTag ASKED = new TreeNodeTag("penstock.CatalogAggregates");
  private static final int MOST_ROWS = 100000; // that are counted here, and not by a job

  public LogicalPlan apply(LogicalPlan plan) {
    if (!plan.containsPattern(TreePattern.AGGREGATE()) || readsLessThanThereIs()) return plan;
    return (LogicalPlan) plan.transformUp(new OfTables());
  }

  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  /** Whether rows may be missing that the catalog knows of, and the user wants it so. */
  private static boolean readsLessThanThereIs() {
    SQLConf settings = SQLConf.get();
    return settings.ignoreMissingFiles() || settings.ignoreCorruptFiles();
  }

  private static class OfTables extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      if (!(node instanceof Aggregate)) return false;
      Aggregate aggregate = (Aggregate) node;
      return aggregate.groupingExpressions().isEmpty() && aggregate.getTagValue(ASKED).isEmpty();
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      Aggregate aggregate = (Aggregate) node;
      ArrayList functions = functions(aggregate);
      LogicalPlan found = functions == null ? aggregate : new Answer(aggregate, functions).plan();
      found.setTagValue(ASKED, Boolean.TRUE);
      return found;
    }
  }

  /** The functions of an aggregate, or null where one of them is not of those that a catalog may know. */
  private static ArrayList functions(Aggregate aggregate) {
    ArrayList found = new ArrayList();
    Seq named = aggregate.aggregateExpressions();
    for (int i = 0; i < named.size(); i++) {
      Expression expression = (Expression) named.apply(i);
      if (!expression.deterministic()) return null;
      collect(expression, found);
    }
    for (int i = 0; i < found.size(); i++) {
      AggregateExpression one = (AggregateExpression) found.get(i);
      boolean plain = one.mode() == Complete$.MODULE$ && !one.isDistinct() && one.filter().isEmpty();
      if (!plain || argument(one) == null) return null;
    }
    return found.isEmpty() ? null : found;
  }

  private static void collect(Expression expression, List found) {
    if (expression instanceof AggregateExpression) {
      if (!found.contains(expression)) found.add(expression);
      return;
    }
    Seq children = expression.children();
    for (int i = 0; i < children.size(); i++) collect((Expression) children.apply(i), found);
  }

  private static String name(AggregateExpression one) {
    AggregateFunction function = one.aggregateFunction();
    return function instanceof Count ? "count" : function instanceof Min ? "min" : "max";
  }

  private static Expression argument(AggregateExpression one) {
    AggregateFunction function = one.aggregateFunction();
    boolean known = function instanceof Count || function instanceof Min || function instanceof Max;
    return known && function.children().size() == 1 ? (Expression) function.children().apply(0) : null;
  }

  /** What is known of one aggregate, and the plan with it. */
  private static class Answer {
    final Aggregate aggregate;
    final ArrayList functions;
    final Object[] known;
    final ArrayList left = new ArrayList();
    final String[] names;
    boolean asked;

    Answer(Aggregate aggregate, ArrayList functions) {
      this.aggregate = aggregate;
      this.functions = functions;
      this.known = new Object[functions.size()];
      this.names = new String[functions.size()];
      for (int i = 0; i < known.length; i++) {
        known[i] = isCount(i) ? Long.valueOf(0L) : null;
        names[i] = name(function(i));
      }
    }

    boolean isCount(int i) { return function(i).aggregateFunction() instanceof Count; }
    AggregateExpression function(int i) { return (AggregateExpression) functions.get(i); }

    LogicalPlan plan() {
      LogicalPlan child = aggregate.child();
      if (child instanceof Union) {
        Seq branches = child.children();
        for (int i = 0; i < branches.size(); i++) ask((LogicalPlan) branches.apply(i));
      } else {
        ask(child);
      }
      if (!asked) return aggregate;
      if (left.isEmpty()) return whole();
      LogicalPlan rest = left.size() == 1 ? (LogicalPlan) left.get(0) : new Union(seq(left), false, false);
      return new Aggregate(NONE, named(rest), rest, aggregate.hint());
    }

    void ask(LogicalPlan branch) {
      FileChain chain = new FileChain(branch, arguments(branch));
      if (!chain.isPlain) left.add(branch);
      else if (chain.leaf instanceof LocalRelation) add(ofRows(chain), null, branch);
      else if (chain.index() != null) ofFiles(chain, branch);
      else left.add(branch);
    }

    /** What the functions are of, in the columns of one branch. */
    Expression[] arguments(LogicalPlan branch) {
      Expression[] arguments = new Expression[functions.size()];
      Renamed renamed = new Renamed(aggregate.child().output(), branch.output());
      for (int i = 0; i < arguments.length; i++) arguments[i] = (Expression) argument(function(i)).transformUp(renamed);
      return arguments;
    }

    void ofFiles(FileChain chain, LogicalPlan branch) {
      CatalogFileIndex index = chain.index();
      String question = chain.question(names);
      String[] told = index.known(question);
      Object[] values = told == null ? null : new Object[functions.size()];
      for (int i = 0; values != null && i < values.length; i++) {
        DataType type = function(i).dataType();
        if (told[i + 1] != null && !isExact(type)) values = null;
        else values[i] = value(told[i + 1], type);
      }
      boolean all = values != null && told[0].equals("0");
      asked = asked || values != null;
      add(values, values == null || all ? null : chain.over(index.without(question)), branch);
    }

    /** Values that are known of a branch, or null, and the plan of what is left of it, if anything. */
    void add(Object[] values, LogicalPlan rest, LogicalPlan branch) {
      if (values == null) {
        left.add(branch);
        return;
      }
      if (rest != null) left.add(rest);
      for (int i = 0; i < known.length; i++) known[i] = together(i, known[i], values[i]);
    }

    Object together(int i, Object one, Object other) {
      if (one == null || other == null) return one == null ? other : one;
      if (isCount(i)) return Long.valueOf(((Long) one).longValue() + ((Long) other).longValue());
      boolean isLess = ((Comparable) one).compareTo(other) < 0;
      return isLess == function(i).aggregateFunction() instanceof Min ? one : other;
    }

    /** The functions over rows that the driver has, or null. */
    Object[] ofRows(FileChain chain) {
      LocalRelation rows = (LocalRelation) chain.leaf;
      if (!chain.conditions.isEmpty() || rows.data().size() > MOST_ROWS) return null;
      int[] places = new int[known.length];
      for (int i = 0; i < known.length; i++) {
        places[i] = place(rows.output(), chain.arguments[i]);
        boolean isBound = places[i] >= 0 && isExact(function(i).dataType());
        if (places[i] == ABSENT || !isCount(i) && !isBound) return null;
      }
      Object[] values = new Object[known.length];
      for (int i = 0; i < known.length; i++) values[i] = isCount(i) ? Long.valueOf(0L) : null;
      Iterator each = rows.data().iterator();
      while (each.hasNext()) {
        InternalRow row = (InternalRow) each.next();
        for (int i = 0; i < known.length; i++) {
          boolean isNull = places[i] != EVERY_ROW && row.isNullAt(places[i]);
          if (isNull) continue;
          values[i] = together(i, values[i], isCount(i) ? Long.valueOf(1L) : row.get(places[i], function(i).dataType()));
        }
      }
      return values;
    }

    /** Nothing is left: one row, which takes no job. */
    LogicalPlan whole() {
      ArrayList literals = new ArrayList();
      for (int i = 0; i < known.length; i++) literals.add(literal(i));
      Seq named = replaced(aggregate.aggregateExpressions(), new Replaced(functions, literals));
      ArrayList rows = new ArrayList();
      rows.add(new GenericInternalRow(new Object[0]));
      LocalRelation one = new LocalRelation(NONE, seq(rows), false, Option.empty());
      return ConvertToLocalRelation$.MODULE$.apply(new Project(named, one));
    }

    /** The columns of the aggregate over the rest, with what is known put in. */
    Seq named(LogicalPlan rest) {
      Seq own = replaced(aggregate.aggregateExpressions(), new Renamed(aggregate.child().output(), rest.output()));
      ArrayList of = new ArrayList();
      ArrayList with = new ArrayList();
      Renamed renamed = new Renamed(aggregate.child().output(), rest.output());
      for (int i = 0; i < known.length; i++) {
        Expression function = (Expression) function(i).transformUp(renamed);
        if (known[i] == null) continue;
        of.add(function);
        with.add(isCount(i) ? new Add(function, literal(i)) : bounded(i, function));
      }
      return replaced(own, new Replaced(of, with));
    }

    Expression bounded(int i, Expression function) {
      ArrayList both = new ArrayList();
      both.add(function);
      both.add(literal(i));
      boolean isLeast = function(i).aggregateFunction() instanceof Min;
      return new KnownNullable(isLeast ? (Expression) new Least(seq(both)) : (Expression) new Greatest(seq(both)));
    }

    /** A value in the type of the function, which for all but counts may be NULL, as far as Spark knows. */
    Expression literal(int i) {
      Literal literal = new Literal(known[i], function(i).dataType());
      return isCount(i) || known[i] == null ? (Expression) literal : (Expression) new KnownNullable(literal);
    }
  }

  private static final int EVERY_ROW = -1;
  private static final int ABSENT = -2;

  private static int place(Seq output, Expression argument) {
    if (argument instanceof Literal) return ((Literal) argument).value() == null ? ABSENT : EVERY_ROW;
    if (!(argument instanceof Attribute)) return ABSENT;
    scala.collection.Iterator columns = output.iterator(); // a list, which goes through all before a place to get there
    for (int i = 0; columns.hasNext(); i++) {
      if (((Attribute) columns.next()).exprId().equals(((Attribute) argument).exprId())) return i;
    }
    return ABSENT;
  }

  /** Columns of one plan as those of another, by their places. */
  private static class Renamed extends AbstractPartialFunction {
    final Seq from;
    final Seq to;
    Renamed(Seq from, Seq to) {
      this.from = from;
      this.to = to;
    }

    public boolean isDefinedAt(Object node) { return node instanceof AttributeReference && place(from, (Expression) node) >= 0; }
    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? to.apply(place(from, (Expression) node)) : otherwise.apply(node);
    }
  }

  /** Expressions in the place of functions. */
  private static class Replaced extends AbstractPartialFunction {
    final List functions;
    final List with;
    Replaced(List functions, List with) {
      this.functions = functions;
      this.with = with;
    }

    public boolean isDefinedAt(Object node) { return node instanceof AggregateExpression && functions.contains(node); }
    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? with.get(functions.indexOf(node)) : otherwise.apply(node);
    }
  }

  private static Seq replaced(Seq named, AbstractPartialFunction how) {
    ArrayList all = new ArrayList();
    for (int i = 0; i < named.size(); i++) all.add(((Expression) named.apply(i)).transformUp(how));
    return seq(all);
  }

  /** Whether values of a type stand in the catalog as they stand in rows. */
  private static boolean isExact(DataType type) {
    return type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType || isInt(type) || isLong(type)
        || type instanceof DecimalType;
  }

  private static boolean isInt(DataType type) { return type instanceof IntegerType || type instanceof DateType; }

  private static boolean isLong(DataType type) {
    return type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType;
  }

  private static Object value(String text, DataType type) {
    if (text == null) return null;
    if (type instanceof BooleanType) return Boolean.valueOf(text);
    if (type instanceof ByteType) return Byte.valueOf(text);
    if (type instanceof ShortType) return Short.valueOf(text);
    if (isInt(type)) return Integer.valueOf(text);
    if (isLong(type)) return Long.valueOf(text);
    DecimalType decimal = (DecimalType) type;
    return Decimal.apply(new java.math.BigDecimal(text), decimal.precision(), decimal.scale());
  }

  private static Seq seq(ArrayList list) {
    return scala.jdk.javaapi.CollectionConverters.asScala((List) list).toSeq();
  }
}
