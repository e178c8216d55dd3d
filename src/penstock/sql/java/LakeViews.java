package penstock.sql;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import scala.collection.immutable.Seq;

/** The lake on Spark 4.1, where catalogs have no views: queries get the plan of a view's query in the place of its name. */
public class LakeViews extends LakeCatalog {
  Table table(Identifier identifier, Map about) { return new LakeTable(lake(), name(), identifier, about); }

  LogicalPlan view(SparkSession session, UnresolvedRelation relation, List path) {
    boolean bare = relation.multipartIdentifier().size() == 1;
    if (path.size() > 2 || isTemporary(session, relation.multipartIdentifier())) return null;
    String[] current = session.sessionState().catalogManager().currentNamespace();
    String schema = path.size() == 2 ? (String) path.get(0) : bare ? schema(current) : DEFAULT_SCHEMA;
    String name = (String) path.get(path.size() - 1);
    ReadLakeTables.note(lake(), answer(new Object[] {"view_note", schema, name})); // first: it may change meanwhile
    Object plan = answer(new Object[] {"view_plan", name(), schema, name});
    if (plan == null) return null;
    List full = Arrays.asList(new Object[] {name(), schema, name});
    return SubqueryAlias$.MODULE$.apply(Lakes.seq(full), (LogicalPlan) plan);
  }

  void checkViewStatement(SparkSession session, Seq name) {
    if (!isTemporary(session, name)) answer(new Object[] {"refuse_view_statements"});
  }

  private static boolean isTemporary(SparkSession session, Seq name) {
    return name.size() == 1 && session.sessionState().catalog().isTempView(name);
  }
}
