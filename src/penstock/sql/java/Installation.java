package penstock.sql;

import java.lang.reflect.Field;
import java.util.ArrayList;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Puts the rules into a session that runs already. Spark builds the optimizer's extensions for every query, so that an
 * injected rule holds at once. The analyzer's rules were made with the session: those fields are set, and the rules are
 * injected for sessions that are yet to be made, such as the clones that streams run in.
 */
public final class Installation {
  public static synchronized void into(SparkSession session) throws Exception {
    SparkSessionExtensions extensions = session.extensions();
    Analyzer analyzer = session.sessionState().analyzer(); // made before the rules are injected, as it is given them below
    if (!has(extensions.buildOptimizerRules(session), ReadLakeTables.class)) {
      extensions.injectOptimizerRule(new Builder("read"));
      extensions.injectPostHocResolutionRule(new Builder("change"));
      extensions.injectPostHocResolutionRule(new Builder("stream"));
      extensions.injectHintResolutionRule(new Builder("functions"));
    }
    add(analyzer, "postHocResolutionRules", analyzer.postHocResolutionRules(), new ChangeLakeTables());
    add(analyzer, "postHocResolutionRules", analyzer.postHocResolutionRules(), new StreamLakeTables());
    add(analyzer, "hintResolutionRules", analyzer.hintResolutionRules(), new LakeNames(session));
  }

  private static boolean has(Seq rules, Class kind) {
    for (int i = 0; i < rules.size(); i++) {
      if (kind.isInstance(rules.apply(i))) return true;
    }
    return false;
  }

  private static void add(Analyzer analyzer, String name, Seq present, Rule rule) throws Exception {
    if (has(present, rule.getClass())) return;
    ArrayList all = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(present));
    all.add(rule);
    for (Class kind = analyzer.getClass(); kind != null; kind = kind.getSuperclass()) {
      Field[] fields = kind.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (!fields[i].getName().equals(name)) continue;
        fields[i].setAccessible(true);
        fields[i].set(analyzer, Lakes.seq(all));
        return;
      }
    }
    throw new IllegalStateException("this Spark's analyzer keeps its " + name + " elsewhere: " + analyzer.getClass());
  }

  private static class Builder extends AbstractFunction1 {
    private final String kind;
    Builder(String kind) { this.kind = kind; }
    public Object apply(Object session) {
      if (kind.equals("read")) return new ReadLakeTables();
      if (kind.equals("change")) return new ChangeLakeTables();
      if (kind.equals("stream")) return new StreamLakeTables();
      return new LakeNames((SparkSession) session);
    }
  }
}
