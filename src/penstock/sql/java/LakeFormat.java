package penstock.sql;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * The format "ducklake". Python says which lake and table its options mean. A read is a table as by name, so that its rows
 * are Python's plan; writes, and streams both ways, are calls of Python.
 */
public class LakeFormat
    implements DataSourceRegister, TableProvider, CreatableRelationProvider, StreamSourceProvider, StreamSinkProvider {
  public static final String FORMAT = "format"; // in the place of a lake's id: who answers for the format itself
  private static final String PARTITIONS = "__partition_columns";

  public String shortName() { return "ducklake"; }

  static Object answer(String verb, Map options, Object[] more) {
    if (!Lakes.has(FORMAT)) throw new IllegalStateException("call penstock.register(spark) first");
    Object[] question = new Object[more.length + 2];
    question[0] = verb;
    question[1] = Lakes.json(new HashMap(options));
    System.arraycopy(more, 0, question, 2, more.length);
    return Lakes.answer(FORMAT, question);
  }

  private static Map options(scala.collection.immutable.Map parameters) {
    return scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Map) parameters);
  }

  // A read

  public StructType inferSchema(CaseInsensitiveStringMap options) { return new StructType(); } // getTable looks itself
  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) { return new Transform[0]; }
  public boolean supportsExternalMetadata() { return false; }

  public Table getTable(StructType schema, Transform[] partitioning, Map options) { return new Found(options); }

  /**
   * What Spark asks a provider for, for reads and for writes, whose table may not be there yet: it is looked for when a
   * read needs it. It cannot be written, so that Spark leaves writes to createRelation.
   */
  public static class Found implements SupportsRead, SupportsMetadataColumns {
    private final Map options;
    private LakeTable table;
    Found(Map options) { this.options = options; }

    public synchronized LakeTable table() {
      if (table == null) {
        Map told = Lakes.map(answer("table", options, new Object[0]));
        Identifier identifier = Identifier.of(new String[] {(String) told.get("schema")}, (String) told.get("name"));
        table = new LakeTable((String) told.get("lake"), "ducklake", identifier, (Map) told.get("about"));
      }
      return table;
    }

    public String name() { return table().name(); }
    public StructType schema() { return table().schema(); }
    public Transform[] partitioning() { return table().partitioning(); }
    public MetadataColumn[] metadataColumns() { return table().metadataColumns(); }
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap given) { return table().newScanBuilder(given); }
    public Set capabilities() { return java.util.Collections.singleton(TableCapability.BATCH_READ); }
    public boolean equals(Object other) {
      return other instanceof Found && ((Found) other).table().equals(table());
    }
    public int hashCode() { return table().hashCode(); }
  }

  // A write, into a table that may not be there yet

  public BaseRelation createRelation(
      SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters, Dataset data) {
    answer("write", options(parameters), new Object[] {mode.toString(), data});
    return new Written(context, data.schema());
  }

  /** Spark throws it away. */
  public static class Written extends BaseRelation {
    private final SQLContext context;
    private final StructType schema;
    Written(SQLContext context, StructType schema) {
      this.context = context;
      this.schema = schema;
    }
    public SQLContext sqlContext() { return context; }
    public StructType schema() { return schema; }
  }

  // Streams

  public Tuple2 sourceSchema(
      SQLContext context, Option schema, String name, scala.collection.immutable.Map parameters) {
    Map stream = Lakes.map(answer("stream", options(parameters), new Object[0]));
    LakeSource.remember(parameters, stream);
    return new Tuple2("ducklake", Lakes.schema((String) stream.get("schema")));
  }

  public Source createSource(
      SQLContext context, String place, Option schema, String name, scala.collection.immutable.Map parameters) {
    Map known = LakeSource.remembered(parameters);
    Map stream = known != null ? known : Lakes.map(answer("stream", options(parameters), new Object[0]));
    return new LakeSource(stream);
  }

  public Sink createSink(
      SQLContext context, scala.collection.immutable.Map parameters, Seq partitionColumns, OutputMode mode) {
    Map given = new HashMap(options(parameters));
    Object columns = scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Seq) partitionColumns);
    given.put(PARTITIONS, Lakes.json(columns)); // where Spark puts those of a batch itself
    return new LakeSink(Lakes.map(answer("sink", given, new Object[] {mode.toString()})));
  }
}
