package penstock.sql;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsPartitionManagement;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A lake's table as Spark's analyzer sees it. Spark's own machinery neither scans nor writes it: ReadLakeTables puts
 * Python's plan in its place, ChangeLakeTables makes calls of the statements on it.
 *
 * What Python tells of it: schema (JSON of a StructType), partitioning ([transform, column, number]), properties, id,
 * version, and `handle`, the JSON by which Python finds it again.
 */
public class LakeTable
    implements SupportsRead, SupportsWrite, SupportsMetadataColumns, SupportsPartitionManagement, TruncatableTable,
        LakeRows {
  public static final String ROW_ID = "rowid";
  private static final List HANDLE = Arrays.asList(new Object[] {"schema", "name", "at", "seen"});
  private final String lake;
  private final String catalog;
  private final Identifier identifier;
  private final Map about;
  private final StructType schema;

  public LakeTable(String lake, String catalog, Identifier identifier, Map about) {
    this.lake = lake;
    this.catalog = catalog;
    this.identifier = identifier;
    this.about = about;
    this.schema = Lakes.schema((String) about.get("schema"));
  }

  public String lake() { return lake; }
  public String handle() { return (String) about.get("handle"); }

  /** The names that the table goes by, as lists of their parts. */
  List names() {
    ArrayList all = new ArrayList();
    String schema = LakeCatalog.schema(identifier);
    all.add(Arrays.asList(new Object[] {catalog, schema, identifier.name()}));
    if (schema.equals(LakeCatalog.DEFAULT_SCHEMA)) all.add(Arrays.asList(new Object[] {catalog, identifier.name()}));
    return all;
  }

  Object answer(String verb, Object[] more) {
    Object[] question = new Object[more.length + 2];
    question[0] = verb;
    question[1] = handle();
    System.arraycopy(more, 0, question, 2, more.length);
    return Lakes.answer(lake, question);
  }

  public String name() { return catalog + "." + identifier.toString(); }
  public String id() { return (String) about.get("id"); }
  public String version() { return (String) about.get("version"); }
  public StructType schema() { return schema; } // columns() follows: defaults and comments are in the fields' metadata
  public Map properties() { return (Map) about.get("properties"); }

  public Transform[] partitioning() {
    List given = (List) about.get("partitioning");
    Transform[] all = new Transform[given.size()];
    for (int i = 0; i < all.length; i++) all[i] = transform((List) given.get(i));
    return all;
  }

  private static Transform transform(List parts) {
    String kind = (String) parts.get(0);
    String[] columns = new String[] {(String) parts.get(1)};
    if (kind.equals("bucket")) return Expressions.bucket(((Number) parts.get(2)).intValue(), columns);
    if (kind.equals("identity")) return Expressions.identity(columns[0]);
    return Expressions.apply(kind, new Expression[] {Expressions.column(columns[0])});
  }

  public Set capabilities() {
    HashSet all = new HashSet();
    all.add(TableCapability.BATCH_READ);
    all.add(TableCapability.BATCH_WRITE);
    all.add(TableCapability.TRUNCATE);
    all.add(TableCapability.OVERWRITE_BY_FILTER);
    all.add(TableCapability.OVERWRITE_DYNAMIC);
    all.add(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);
    return all;
  }

  // SHOW PARTITIONS, and nothing else: partitions come and go with rows.

  public StructType partitionSchema() {
    StructType all = new StructType();
    List names = (List) about.get("partitions");
    for (int i = 0; i < names.size(); i++) all = all.add((String) names.get(i), DataTypes.StringType, true);
    return all;
  }

  public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow given) {
    List partitions = Lakes.list(answer("partitions", new Object[0]));
    StructType schema = partitionSchema();
    ArrayList chosen = new ArrayList();
    for (int i = 0; i < partitions.size(); i++) {
      List values = (List) partitions.get(i);
      boolean wanted = true;
      for (int j = 0; j < names.length; j++) {
        UTF8String text = given.isNullAt(j) ? null : given.getUTF8String(j);
        wanted = wanted && Objects.equals(values.get(schema.fieldIndex(names[j])), text == null ? null : text.toString());
      }
      if (wanted) chosen.add(row(values));
    }
    return (InternalRow[]) chosen.toArray(new InternalRow[0]);
  }

  private static InternalRow row(List texts) {
    Object[] values = new Object[texts.size()];
    for (int i = 0; i < values.length; i++) values[i] = UTF8String.fromString((String) texts.get(i));
    return new GenericInternalRow(values);
  }

  private static UnsupportedOperationException noPartitions() {
    return new UnsupportedOperationException(
        "the partitions of a lake's table come and go with its rows; use INSERT, DELETE or INSERT OVERWRITE");
  }

  public void createPartition(InternalRow partition, Map properties) { throw noPartitions(); }
  public boolean dropPartition(InternalRow partition) { throw noPartitions(); }
  public boolean purgePartition(InternalRow partition) { throw noPartitions(); }
  public boolean renamePartition(InternalRow from, InternalRow to) { throw noPartitions(); }
  public boolean truncatePartition(InternalRow partition) { throw noPartitions(); }
  public void replacePartitionMetadata(InternalRow partition, Map properties) { throw noPartitions(); }
  public Map loadPartitionMetadata(InternalRow partition) { return new HashMap(); }
  public boolean partitionExists(InternalRow partition) {
    return listPartitionIdentifiers(partitionSchema().fieldNames(), partition).length > 0;
  }

  public MetadataColumn[] metadataColumns() { return new MetadataColumn[] {new RowId()}; }

  public static class RowId implements MetadataColumn {
    public String name() { return ROW_ID; }
    public DataType dataType() { return DataTypes.LongType; }
    public boolean isNullable() { return true; }
    public String comment() { return "DuckLake's row identifier"; }
  }

  public boolean truncateTable() {
    answer("truncate", new Object[] {null});
    return true;
  }

  // Spark finds cached tables by this.
  public boolean equals(Object other) {
    return other instanceof LakeTable && ((LakeTable) other).lake.equals(lake)
        && ((LakeTable) other).handle().equals(handle());
  }
  public int hashCode() { return handle().hashCode(); }
  public String toString() { return name(); }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new Described(this); }

  /** What DESCRIBE EXTENDED and the optimizer, before it meets ReadLakeTables, ask for statistics. It is never run. */
  public static class Described implements ScanBuilder, SupportsReportStatistics, Statistics {
    private final LakeTable table;
    private Map known;
    Described(LakeTable table) { this.table = table; }
    public Scan build() { return this; }
    public StructType readSchema() { return table.schema(); }
    public String description() { return "a table of a lake, in a session that was not told of it by Penstock"; }
    public Statistics estimateStatistics() { return this; }
    public OptionalLong sizeInBytes() { return number("bytes"); }
    public OptionalLong numRows() { return number("rows"); }
    private OptionalLong number(String what) {
      if (known == null) known = Lakes.map(table.answer("statistics", new Object[0]));
      return OptionalLong.of(((Number) known.get(what)).longValue());
    }
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw new UnsupportedOperationException("this session was not told of the lake by Penstock; attach it there");
  }

  public Object rows(String pin, boolean rowIds) {
    return answer("rows", new Object[] {pin, Boolean.valueOf(rowIds)});
  }

  /** Not where a handle tells more than what table it is: of another snapshot, or of a statement that goes on. */
  public boolean isSettled(String pin) {
    Map handle = Lakes.map(handle());
    return Lakes.map(pin).get("version") != null && handle.get("at") == null && HANDLE.containsAll(handle.keySet());
  }

  /** A table that appears with its rows, in one snapshot: CREATE TABLE AS SELECT, REPLACE TABLE. */
  public static class Staged extends LakeTable implements StagedTable {
    public Staged(String lake, String catalog, Identifier identifier, Map about) {
      super(lake, catalog, identifier, about);
    }
    public void commitStagedChanges() { answer("commit_staged", new Object[0]); }
    public void abortStagedChanges() { answer("abort_staged", new Object[0]); }
    // Janino leaves out this default method of the interface, and the JVM would throw AbstractMethodError.
    public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
  }
}
