package penstock.sql;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;

/**
 * An error that Python raised. `kind` says what Spark has an exception of its own for: the caller throws that instead.
 * An AnalysisException, so that even a JVM without our Python shows the message alone.
 */
public class LakeException extends AnalysisException {
  private final String kind;

  public LakeException(String kind, String message) {
    super(message, Option.empty(), Option.empty(), Option.empty(), Option.empty(),
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(), new QueryContext[0]);
    this.kind = kind;
  }

  boolean is(String kind) { return this.kind.equals(kind); }
}
