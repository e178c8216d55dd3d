package penstock.sql;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.UnresolvedNamedLambdaVariable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Calls of a lake's macros. What a macro means depends on the types of its arguments, which Spark knows when it makes the
 * function's expression: so each call becomes one of a function of the session's, whose expression Python writes then.
 */
class LakeMacros extends AbstractPartialFunction {
  static final String ARGUMENT = "_penstock_argument_";
  private final LakeNames names;
  private final SparkSession session;

  LakeMacros(LakeNames names, SparkSession session) {
    this.names = names;
    this.session = session;
  }

  public boolean isDefinedAt(Object node) {
    if (!(node instanceof UnresolvedFunction)) return false;
    Seq name = ((UnresolvedFunction) node).nameParts();
    if (name.size() == 1 && isOfSession((String) name.apply(0))) return false;
    return names.catalog(name) != null;
  }

  private boolean isOfSession(String name) {
    return session.sessionState().catalog().lookupBuiltinOrTempFunction(name).isDefined()
        || session.sessionState().catalog().lookupBuiltinOrTempTableFunction(name).isDefined();
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    UnresolvedFunction call = (UnresolvedFunction) node;
    LakeCatalog catalog = names.catalog(call.nameParts());
    ArrayList path = new ArrayList();
    for (int i = call.nameParts().size() > 1 ? 1 : 0; i < call.nameParts().size(); i++) path.add(call.nameParts().apply(i));
    Boolean qualified = Boolean.valueOf(call.nameParts().size() > 1);
    boolean plain = !call.isDistinct() && call.filter().isEmpty();
    Object found = Lakes.answer(catalog.lake(), new Object[] {"is_macro", path, qualified});
    if (!((Boolean) found).booleanValue()) return call;
    ReadLakeTables.note(catalog.lake(), Lakes.answer(catalog.lake(), new Object[] {"macro_note", path, "scalar"}));
    if (!plain) {
      throw Lakes.raised(new LakeException("", "a macro's call takes neither DISTINCT nor FILTER; write them in the macro"));
    }
    ArrayList words = new ArrayList();
    ArrayList values = new ArrayList();
    for (int i = 0; i < call.arguments().size(); i++) {
      Expression argument = (Expression) call.arguments().apply(i);
      boolean named = argument instanceof NamedArgumentExpression;
      words.add(named ? ((NamedArgumentExpression) argument).key() : null);
      values.add(named ? ((NamedArgumentExpression) argument).value() : argument);
    }
    Call function = new Call(session, catalog.lake(), catalog.name(), path, words);
    String told = catalog.lake() + catalog.name() + Lakes.json(path) + Lakes.json(words);
    String name = "_penstock_macro_" + new java.math.BigInteger(1, told.getBytes(StandardCharsets.UTF_8)).toString(36);
    session.sessionState().functionRegistry().createOrReplaceTempFunction(name, function, "scala_udf");
    ArrayList own = new ArrayList();
    own.add(name);
    Object[] parts = new Object[call.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = call.productElement(i);
    parts[0] = Lakes.seq(own);
    parts[1] = Lakes.seq(values);
    return call.makeCopy(parts);
  }

  /** Makes the expression of a call, when the types of its arguments are known. */
  private static class Call extends AbstractFunction1 {
    private final SparkSession session;
    private final String lake;
    private final String catalog;
    private final ArrayList path;
    private final ArrayList words;

    Call(SparkSession session, String lake, String catalog, ArrayList path, ArrayList words) {
      this.session = session;
      this.lake = lake;
      this.catalog = catalog;
      this.path = path;
      this.words = words;
    }

    public Object apply(Object children) {
      Seq arguments = (Seq) children;
      ArrayList types = new ArrayList();
      ArrayList constants = new ArrayList();
      for (int i = 0; i < arguments.size(); i++) {
        Expression argument = (Expression) arguments.apply(i);
        types.add(argument.dataType().json());
        Object value = argument instanceof Literal ? ((Literal) argument).value() : null;
        constants.add(value == null ? null : value.toString());
      }
      Boolean ansi = Boolean.valueOf(SQLConf.get().ansiEnabled());
      Object[] question = {"macro_expression", catalog, path, words, types, constants, ansi};
      try {
        String text = (String) Lakes.ask(lake, question);
        Expression expression = session.sessionState().sqlParser().parseExpression(text);
        return expression.transformUp(new Arguments(arguments));
      } catch (LakeException e) {
        // As a cause: an AnalysisException from here Spark would copy, and what Python knows it by be lost.
        throw new IllegalArgumentException(e.getMessage(), e);
      } catch (Exception e) {
        throw Lakes.raised(e);
      }
    }
  }

  /** Puts the arguments in the place of their names. */
  private static class Arguments extends AbstractPartialFunction {
    private final Seq arguments;
    Arguments(Seq arguments) { this.arguments = arguments; }

    private static String name(Object node) {
      if (node instanceof UnresolvedAttribute) return ((UnresolvedAttribute) node).name();
      return node instanceof UnresolvedNamedLambdaVariable ? ((UnresolvedNamedLambdaVariable) node).name() : "";
    }

    public boolean isDefinedAt(Object node) { return name(node).startsWith(ARGUMENT); }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      return arguments.apply(Integer.parseInt(name(node).substring(ARGUMENT.length())));
    }
  }
}
