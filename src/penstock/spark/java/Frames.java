package penstock;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** Makes what a scan is made of, each part in one call from Python, however many columns there are. */
public class Frames {
  private static final String LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes";
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map DERIVED = java.util.Collections.synchronizedMap(new Latest());

  /** `computed`: the SQL of columns that a scan computes from what is in the files, each with the name it reads. */
  public CatalogFileIndex index(Function planner, String constants, String computed, long size, String description) {
    return new CatalogFileIndex().init(planner, schema(constants), (Map) read(computed, Map.class), size, description);
  }

  /** The rows of an index's files; without a format they are Parquet. */
  public Dataset rows(SparkSession session, CatalogFileIndex index, String schema, FileFormat format, String options) {
    Dataset rows = session.baseRelationToDataFrame(new HadoopFsRelation(
        index, index.partitionSchema(), schema(schema), Option.empty(), format == null ? new ParquetFileFormat() : format,
        PythonUtils.toScalaMap((Map) read(options, Map.class)), session));
    if (!index.derived().isEmpty()) index.derive(derived(session, rows, schema, index.derived()));
    return rows;
  }

  /** Columns as JSON, [[name, SQL], ...], over the rows of a frame. */
  public Dataset projected(Dataset rows, String columns) {
    SparkSession session = rows.sparkSession();
    LogicalPlan plan = rows.queryExecution().analyzed();
    LogicalPlan shown = Projection.over(plan, (List) read(columns, List.class), session.sessionState().conf());
    return shown == plan ? rows : Dataset.ofRows(session, shown);
  }

  /** Rows with functions in place of the columns that they are of, by the places of these. */
  public Dataset applied(Dataset rows, Map functions) {
    return Dataset.ofRows(rows.sparkSession(), Projection.applied(rows.queryExecution().analyzed(), functions));
  }

  /** Rows by a name and its qualifier, with columns [[name, place], ...], or as they are. */
  public Dataset qualified(Dataset rows, String name, String qualifier, String columns) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    if (columns != null) plan = Projection.placed(plan, (List) read(columns, List.class));
    Seq over = Projection.seq(java.util.Collections.singletonList(qualifier));
    return Dataset.ofRows(rows.sparkSession(), new SubqueryAlias(new AliasIdentifier(name, over), plan));
  }

  /** Whether the condition that rows were filtered by compares a column itself, or a cast of one. */
  public boolean comparesColumns(Dataset filtered) {
    LogicalPlan plan = filtered.queryExecution().analyzed();
    return !(plan instanceof Filter) || FilterText.comparesColumns(((Filter) plan).condition());
  }

  /** Rows that the driver holds, as a stream of Arrow's; null where the session expects it with wider offsets. */
  public Dataset local(SparkSession session, byte[] stream, String schema) {
    if ("true".equals(session.sessionState().conf().getConfString(LARGE_TYPES, "false"))) return null;
    scala.collection.Iterator batches =
        ArrowConverters$.MODULE$.getBatchesFromStream(Channels.newChannel(new ByteArrayInputStream(stream)));
    return (Dataset) ArrowConverters$.MODULE$.toDataFrame(batches, schema, session);
  }

  /** Without rows too, but Spark does not know it. */
  public Dataset unread(SparkSession session, String schema) {
    return session.createDataFrame(JavaSparkContext.fromSparkContext(session.sparkContext()).emptyRDD(), schema(schema));
  }

  public Dataset empty(SparkSession session, String schema) { return session.createDataFrame(new ArrayList(), schema(schema)); }

  /**
   * Computations as they stand in a plan that Spark has optimized: so they are met in the filters that it pushes. To
   * optimize takes longer than all the rest of a scan, so what was found is kept.
   */
  private static Map derived(SparkSession session, Dataset rows, String schema, Map computed) {
    ArrayList key = new ArrayList();
    key.add(schema);
    key.add(computed);
    key.add(Boolean.valueOf(session.sessionState().conf().ansiEnabled()));
    key.add(session.sessionState().conf().sessionLocalTimeZone());
    Map known = (Map) DERIVED.get(key);
    if (known == null) DERIVED.put(key, known = optimized(session, rows, computed));
    return known;
  }

  private static Map optimized(SparkSession session, Dataset rows, Map computed) {
    ArrayList columns = new ArrayList();
    for (Iterator all = computed.entrySet().iterator(); all.hasNext();) {
      Map.Entry one = (Map.Entry) all.next();
      ArrayList column = new ArrayList();
      column.add(one.getValue());
      column.add(one.getKey());
      columns.add(column);
    }
    LogicalPlan plan = Projection.over(rows.queryExecution().analyzed(), columns, session.sessionState().conf());
    HashMap found = new HashMap();
    LogicalPlan done = Dataset.ofRows(session, plan).queryExecution().optimizedPlan();
    if (!(done instanceof Project)) return found;
    Seq projected = ((Project) done).projectList();
    for (int i = 0; i < projected.size(); i++) {
      if (!(projected.apply(i) instanceof Alias)) continue;
      Alias alias = (Alias) projected.apply(i);
      if (!alias.child().references().isEmpty()) found.put(alias.child().sql(), alias.name());
    }
    return found;
  }

  /** A map that forgets what was put in long ago. */
  private static class Latest extends LinkedHashMap {
    protected boolean removeEldestEntry(Map.Entry eldest) { return size() > 256; }
  }

  private static StructType schema(String json) { return (StructType) DataType.fromJson(json); }

  private static Object read(String json, Class kind) {
    try {
      return JSON.readValue(json, kind);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}
