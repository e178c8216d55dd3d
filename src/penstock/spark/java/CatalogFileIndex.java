package penstock;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * The files of one branch of a scan, chosen by Python while Spark plans. Lives in the driver only.
 *
 * As a supplier it gives others of the same files: for those who do not know this class, see KeptPlans.
 */
public class CatalogFileIndex implements FileIndex, Supplier {
  private static final String RECORD = "\u001e";
  private static final String FIELD = "\u001f";
  private static final String NULL = "\u0000";
  private static final String FAILED = "\u0001";
  private static final long KEPT_NANOSECONDS = 10000000000L; // an answer, from planning to running
  private static final String DELETES = "_penstock_deletes";  // among a file's metadata: see ParquetWithDeletes
  private static final String AGGREGATES = "\u0002";
  // For files that Python reads: Spark would ask their store about each, with a file system that it may not have.
  private static final Path ANYWHERE = new Path("file:///");

  private Function planner;
  private StructType constants;
  private Map derived;
  private long sizeInBytes;
  private String description;
  private CatalogFileIndex leader = this;
  private boolean follower;
  private boolean readInPython;
  private String given;
  private String told;
  private String answered;
  private String asked;
  private String answer;
  private String shown;
  private long askedAt;
  private long remaining = -1;

  public CatalogFileIndex init(Function planner, StructType constants, Map derived, long sizeInBytes, String description) {
    this.planner = planner;
    this.constants = constants;
    this.derived = derived;
    this.sizeInBytes = sizeInBytes;
    this.description = description;
    return this;
  }

  /** From now on this index is given the filters over the rows of another one's files (see FollowFilters). */
  public CatalogFileIndex follow(CatalogFileIndex leader) {
    this.leader = leader.leader;
    this.follower = true;
    return this;
  }

  /** Its rows are files, which a map right above it turns into the table's rows. */
  public CatalogFileIndex readInPython() {
    this.readInPython = true;
    return this;
  }

  public boolean isFollower() { return follower; }
  public boolean isReadInPython() { return readInPython; }
  public boolean follows(CatalogFileIndex other) { return leader == other.leader; }
  public Map derived() { return derived; }
  void derive(Map computations) { this.derived = computations; }
  public String given() { return given; }

  public String told() { return told; }

  /** The same with the filters to choose files by. */
  public CatalogFileIndex withFilters(String filters) {
    CatalogFileIndex copy = copy();
    copy.given = filters;
    return copy;
  }

  /** The same with the filters that Spark will hand over when it lists the files, for EXPLAIN. */
  public CatalogFileIndex toldOf(String filters) {
    CatalogFileIndex copy = copy();
    copy.told = filters;
    return copy;
  }

  /** The same without the files that aggregates are known of: see CatalogAggregates. */
  public CatalogFileIndex without(String question) {
    CatalogFileIndex copy = copy();
    copy.told = told;
    copy.answered = question;
    return copy;
  }

  /** Whether each of its files is rows of a table, all of them, and the catalog may know aggregates of these. */
  public boolean isAskedForRows() { return !follower && !readInPython && given == null && answered == null; }

  /**
   * What the catalog knows of aggregates: in how many files there may be more rows, and the values over the others, of
   * which NULLs are null. Null where it knows nothing.
   */
  public String[] known(String question) {
    String known = (String) planner.apply(AGGREGATES + question);
    if (known.startsWith(FAILED)) throw new PlanningException(known.substring(1));
    if (known.isEmpty()) return null;
    String[] fields = known.split(FIELD, -1);
    for (int i = 0; i < fields.length; i++) {
      if (NULL.equals(fields[i])) fields[i] = null;
    }
    return fields;
  }

  /** The index of a relation, where it is one of ours. */
  static CatalogFileIndex of(Object node) {
    if (!(node instanceof LogicalRelation)) return null;
    Object relation = ((LogicalRelation) node).relation();
    if (!(relation instanceof HadoopFsRelation)) return null;
    Object location = ((HadoopFsRelation) relation).location();
    return location instanceof CatalogFileIndex ? (CatalogFileIndex) location : null;
  }

  /** A relation with another index in the place of its own. */
  static LogicalRelation over(LogicalRelation old, CatalogFileIndex index) {
    HadoopFsRelation files = (HadoopFsRelation) old.relation();
    HadoopFsRelation chosen = new HadoopFsRelation(
        index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(), files.fileFormat(), files.options(),
        files.sparkSession());
    return new LogicalRelation(chosen, old.output(), old.catalogTable(), old.isStreaming(), old.stream());
  }

  public Object get() { return copy(); }

  private CatalogFileIndex copy() {
    CatalogFileIndex copy = new CatalogFileIndex().init(planner, constants, derived, sizeInBytes, description);
    copy.leader = leader;
    copy.follower = follower;
    copy.readInPython = readInPython;
    copy.answered = answered;
    return copy;
  }

  /** Two that list the same files: Spark computes what is read through them once. */
  public boolean equals(Object other) {
    if (!(other instanceof CatalogFileIndex)) return false;
    CatalogFileIndex index = (CatalogFileIndex) other;
    return planner == index.planner && leader == index.leader && follower == index.follower
        && java.util.Objects.equals(given, index.given) && java.util.Objects.equals(told, index.told)
        && java.util.Objects.equals(answered, index.answered);
  }

  public int hashCode() { return System.identityHashCode(planner) + java.util.Objects.hashCode(told); }

  /** One call into Python: the filters as JSON in; a record a file out, of its URI, its size, its constants and deletes. */
  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    String chosen = choose(given != null ? given : FilterText.all(dataFilters, derived), false);
    if (chosen.startsWith(FAILED)) throw new PlanningException(chosen.substring(1));
    BasePredicate[] onConstants = predicates(partitionFilters);
    ArrayList directories = new ArrayList();
    String[] records = chosen.isEmpty() ? new String[0] : chosen.split(RECORD, -1);
    for (int i = 0; i < records.length; i++) {
      String[] field = records[i].split(FIELD, -1);
      GenericInternalRow values = new GenericInternalRow(values(field));
      if (!all(onConstants, values)) continue;
      Path path = readInPython ? ANYWHERE : new Path(java.net.URI.create(field[0]));
      FileStatus status = new FileStatus(Long.parseLong(field[1]), false, 1, 134217728L, 0L, path);
      ArrayList one = new ArrayList();
      one.add(new FileStatusWithMetadata(status, deletes(field)));
      directories.add(new PartitionDirectory(values, seq(one)));
    }
    return seq(directories);
  }

  /** What stands in a record after the constants is about deleted rows: for ParquetWithDeletes. */
  private scala.collection.immutable.Map deletes(String[] field) {
    int place = constants.size() + 2;
    Object told = scala.collection.immutable.Map$.MODULE$.empty();
    if (place < field.length) told = ((scala.collection.immutable.Map) told).updated(DELETES, unescaped(field[place]));
    return (scala.collection.immutable.Map) told;
  }

  /**
   * What Python answers to filters. Spark tells a plan, and asks for its size, before it runs it: the answer to the one is
   * kept for the other, and no longer, as Python has to notice what was changed meanwhile.
   */
  private synchronized String choose(String pushed, boolean keep) {
    String filters = answered == null ? pushed : FilterText.with(pushed, "answered", answered);
    boolean known = filters.equals(asked) && System.nanoTime() - askedAt < KEPT_NANOSECONDS;
    String files = known ? answer : (String) planner.apply(filters);
    if (!known) askedAt = System.nanoTime();
    boolean failed = files.startsWith(FAILED);
    asked = keep && !failed ? filters : null;
    answer = keep && !failed ? files : null;
    if (!failed) shown = description + counted(files.isEmpty() ? 0 : files.split(RECORD, -1).length);
    return files;
  }

  private String counted(int files) {
    return ", " + files + (description.endsWith(" before pruning") ? " after it" : " files");
  }

  /** Spark leaves the filters on constants alone to the index, and does not test them again. */
  private BasePredicate[] predicates(Seq filters) {
    BasePredicate[] predicates = new BasePredicate[filters.size()];
    for (int i = 0; i < predicates.length; i++) {
      Expression bound = (Expression) ((Expression) filters.apply(i)).transform(new ToConstants(constants));
      predicates[i] = Predicate$.MODULE$.createInterpreted(bound);
    }
    return predicates;
  }

  private static boolean all(BasePredicate[] predicates, GenericInternalRow values) {
    for (int i = 0; i < predicates.length; i++) {
      if (!predicates[i].eval(values)) return false;
    }
    return true;
  }

  private static class ToConstants extends AbstractPartialFunction {
    final StructType constants;
    ToConstants(StructType constants) { this.constants = constants; }
    public boolean isDefinedAt(Object node) { return node instanceof AttributeReference; }
    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      AttributeReference column = (AttributeReference) node;
      return new BoundReference(constants.fieldIndex(column.name()), column.dataType(), column.nullable());
    }
  }

  private Object[] values(String[] field) {
    Object[] values = new Object[constants.size()];
    for (int i = 0; i < values.length; i++) {
      String text = field[i + 2];
      if (NULL.equals(text)) values[i] = null;
      else if (constants.apply(i).dataType() instanceof LongType) values[i] = Long.valueOf(text);
      else values[i] = UTF8String.fromString(unescaped(text));
    }
    return values;
  }

  /** The text of a constant, in which a backslash stands before what would end a field: see relation.py. */
  private static String unescaped(String text) {
    if (text.indexOf('\\') < 0) return text;
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '\\') c = (char) (text.charAt(++i) - '@');
      out.append(c);
    }
    return out.toString();
  }

  private static Seq seq(ArrayList list) {
    return scala.jdk.javaapi.CollectionConverters.asScala((List) list).toSeq();
  }

  /** No paths: EXPLAIN prints them, so that it tells the table, its snapshot, and how many files are read. */
  public Seq rootPaths() {
    String filters = given != null ? given : told;
    if (shown == null && filters != null) choose(filters, true);
    ArrayList one = new ArrayList();
    one.add(new Path((String) null, (String) null, shown == null ? description : shown));
    return seq(one);
  }

  public String[] inputFiles() { return new String[0]; }
  public void refresh() {}

  /**
   * What is left of the files by the filters, once they are known: Spark chooses joins by it. Positions in delete files are
   * packed so well that their sizes tell nothing.
   */
  public long sizeInBytes() {
    String filters = given != null ? given : told;
    if (follower || filters == null || filters.equals("[]")) return sizeInBytes;
    if (remaining < 0) remaining = sizeOf(choose(filters, true));
    return remaining;
  }

  /** A size of 1 says that nobody knows it. */
  private long sizeOf(String files) {
    if (files.startsWith(FAILED)) return sizeInBytes;
    long size = 0;
    String[] records = files.isEmpty() ? new String[0] : files.split(RECORD, -1);
    for (int i = 0; i < records.length; i++) {
      long one = Long.parseLong(records[i].split(FIELD, 3)[1]);
      if (one <= 1) return sizeInBytes;
      size += one;
    }
    return Math.max(1, size);
  }

  public StructType partitionSchema() { return constants; }
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }
  public boolean isTimeTravel() { return false; }
  public String toString() { return description; }
}
