package penstock.sql;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.DropView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Rule of the "Hints" batch, which comes before Spark looks functions up and refuses those of catalogs in FROM: the plan
 * of a DataFrame that Python makes, in the place of sales.snapshots() or sales.table_changes('orders', 2, 5). Names of
 * views get their schema there too: sales.v is sales.main.v.
 */
public class LakeNames extends Rule {
  private final SparkSession session;
  public LakeNames(SparkSession session) { this.session = session; }

  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan named = (LogicalPlan) plan.resolveOperatorsUp(new Names(this));
    return named.resolveExpressions(new LakeMacros(this, session));
  }
  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  /** The catalog that a name belongs to, if it is a lake: the one it begins with, or the current one. */
  LakeCatalog catalog(Seq name) {
    if (name.size() == 1) return currentCatalog();
    String first = (String) name.apply(0);
    // Asked first, as this loads nothing: other names begin with a schema.
    if (!session.sessionState().conf().contains("spark.sql.catalog." + first)) return null;
    Object found = session.sessionState().catalogManager().catalog(first);
    return found instanceof LakeCatalog ? (LakeCatalog) found : null;
  }

  private LakeCatalog currentCatalog() {
    Object found = session.sessionState().catalogManager().currentCatalog();
    return found instanceof LakeCatalog ? (LakeCatalog) found : null;
  }

  /** Whether a function in FROM is the lake's, before Spark looks at its arguments, which may be columns. */
  private boolean isOurs(Seq name) {
    LakeCatalog catalog = catalog(name);
    if (catalog == null || name.size() > 1) return catalog != null;
    if (session.sessionState().catalog().lookupBuiltinOrTempTableFunction((String) name.apply(0)).isDefined()) return false;
    return Boolean.TRUE.equals(Lakes.answer(catalog.lake(), new Object[] {"has_function", name.apply(0)}));
  }

  /** Spark takes a cached table by its name, which does not have what a transaction has written. */
  private void readAnew(LakeCatalog catalog) {
    if (session.sharedState().cacheManager().isEmpty()) return;
    boolean inTransaction = Boolean.TRUE.equals(Lakes.answer(catalog.lake(), new Object[] {"in_transaction"}));
    if (inTransaction) LakeCache.forget(session, catalog.lake());
  }

  /** An error for a lake that another session has, and this one does not: newSession() copies no catalogs. */
  private void checkKnown(Seq name) {
    String first = (String) name.apply(0);
    if (name.size() < 2 || !Lakes.isName(first)) return;
    if (session.sessionState().conf().contains("spark.sql.catalog." + first)) return;
    if (!session.sessionState().catalogManager().currentCatalog().name().equals("spark_catalog")) return;
    if (session.sessionState().catalog().databaseExists(first)) return;
    throw Lakes.raised(new LakeException("", "this session does not know the lake " + first
        + ", which another one has; make it known with lake.register(\"" + first + "\", spark=session)"));
  }

  /** What a constant argument is: any expression without columns. Times without a zone are in the session's. */
  private Object value(Expression argument) {
    Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
    ArrayList one = new ArrayList();
    one.add(new Alias(argument, "value", NamedExpression.newExprId(), none, Option.empty(), none));
    Dataset row = Dataset.ofRows(session, new Project(Lakes.seq(one), new OneRowRelation()));
    DataType type = row.schema().apply(0).dataType();
    if (type instanceof TimestampNTZType || type instanceof DateType) {
      row = row.selectExpr(new String[] {"CAST(value AS TIMESTAMP)"});
      type = row.schema().apply(0).dataType();
    }
    return Values.plain(row.queryExecution().executedPlan().executeCollect()[0].get(0, type), type);
  }

  private static class Names extends AbstractPartialFunction {
    private final LakeNames rule;
    Names(LakeNames rule) { this.rule = rule; }

    public boolean isDefinedAt(Object node) {
      if (node instanceof UnresolvedRelation) return view((UnresolvedRelation) node) != null;
      if (node instanceof CreateView || node instanceof DropView) check(((LogicalPlan) node).children().apply(0));
      return node instanceof UnresolvedTableValuedFunction && rule.isOurs(((UnresolvedTableValuedFunction) node).name());
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (node instanceof UnresolvedRelation) {
        LogicalPlan view = view((UnresolvedRelation) node);
        return view == null ? otherwise.apply(node) : view;
      }
      return isDefinedAt(node) ? called((UnresolvedTableValuedFunction) node) : otherwise.apply(node);
    }

    private LogicalPlan view(UnresolvedRelation relation) {
      Seq name = relation.multipartIdentifier();
      rule.checkKnown(name);
      LakeCatalog catalog = rule.catalog(name);
      List path = path(name);
      if (catalog == null && name.size() == 2) {
        catalog = rule.currentCatalog();
        path = Arrays.asList(new Object[] {name.apply(0), name.apply(1)});
      }
      if (catalog == null) return null;
      rule.readAnew(catalog);
      return catalog.view(rule.session, relation, path);
    }

    private void check(Object target) {
      if (!(target instanceof UnresolvedIdentifier)) return;
      Seq name = ((UnresolvedIdentifier) target).nameParts();
      LakeCatalog catalog = rule.catalog(name);
      if (catalog != null) catalog.checkViewStatement(rule.session, name);
    }

    /** A name without its catalog. */
    private static List path(Seq name) {
      ArrayList path = new ArrayList();
      for (int i = name.size() > 1 ? 1 : 0; i < name.size(); i++) path.add(name.apply(i));
      return path;
    }

    private Object called(UnresolvedTableValuedFunction call) {
      Boolean qualified = Boolean.valueOf(call.name().size() > 1);
      List path = path(call.name());
      ArrayList names = new ArrayList();
      ArrayList values = new ArrayList();
      for (int i = 0; i < call.functionArgs().size(); i++) {
        Expression argument = (Expression) call.functionArgs().apply(i);
        boolean named = argument instanceof NamedArgumentExpression;
        names.add(named ? ((NamedArgumentExpression) argument).key() : null);
        values.add(rule.value(named ? ((NamedArgumentExpression) argument).value() : argument));
      }
      LakeCatalog catalog = rule.catalog(call.name());
      ReadLakeTables.note(catalog.lake(), Lakes.answer(catalog.lake(), new Object[] {"function_note", path}));
      Object plan = Lakes.answer(catalog.lake(), new Object[] {"table_function", catalog.name(), path, qualified, names, values});
      return plan == null ? call : plan;
    }
  }
}
