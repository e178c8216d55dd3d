package penstock.sql;

import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Post-hoc resolution rule: a lake's table by name as a stream is the stream of the format. */
public class StreamLakeTables extends Rule {
  public LogicalPlan apply(LogicalPlan plan) { return (LogicalPlan) plan.resolveOperatorsUp(new Streams()); }
  public TreeNode apply(TreeNode plan) { return apply((LogicalPlan) plan); }

  private static class Streams extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof StreamingRelationV2 && ((StreamingRelationV2) node).table() instanceof LakeTable;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      StreamingRelationV2 relation = (StreamingRelationV2) node;
      String options = Lakes.json(new HashMap(relation.extraOptions().asCaseSensitiveMap()));
      Object told = ((LakeTable) relation.table()).answer("stream_of", new Object[] {options});
      SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
      Dataset stream = session.readStream().format("ducklake").option("definition", (String) told).load();
      return with(relation, ((org.apache.spark.sql.classic.Dataset) stream).queryExecution().analyzed());
    }

    private static LogicalPlan with(StreamingRelationV2 relation, LogicalPlan stream) {
      ArrayList columns = new ArrayList();
      for (int i = 0; i < relation.output().size(); i++) {
        AttributeReference column = (AttributeReference) relation.output().apply(i);
        columns.add(ReadLakeTables.alias((Attribute) stream.output().apply(i), column));
      }
      return new Project(Lakes.seq(columns), stream);
    }
  }
}
