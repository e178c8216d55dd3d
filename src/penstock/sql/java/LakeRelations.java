package penstock.sql;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/**
 * What Spark has from 4.2 on: views of a catalog, SELECT ... FROM t CHANGES FROM VERSION 1 TO VERSION 2, and tables that
 * say which changes of theirs a write may make.
 */
public class LakeRelations extends LakeCatalog implements RelationCatalog {
  public Relation loadRelation(Identifier identifier) throws NoSuchTableException {
    Object answer = identifier.namespace().length > 1 ? null : answer(question("relation", identifier));
    if (answer == null) throw new NoSuchTableException(identifier);
    Map about = Lakes.map(answer);
    return about.containsKey("sql") ? (Relation) noted(view(about), about) : (Relation) table(identifier, about);
  }

  public boolean tableExists(Identifier identifier) {
    try {
      return load(identifier, null, null) != null;
    } catch (NoSuchTableException e) {
      return false;
    }
  }

  Table table(Identifier identifier, Map about) { return new Evolving(lake(), name(), identifier, about); }

  public static class Evolving extends LakeTable implements SupportsSchemaEvolution {
    Evolving(String lake, String catalog, Identifier identifier, Map about) { super(lake, catalog, identifier, about); }

    public boolean supportsColumnChange(TableChange.ColumnChange change) {
      Object[] told = new Object[] {Lakes.json(TableChanges.told((TableChange) change))};
      return ((Boolean) answer("can_evolve", told)).booleanValue();
    }
  }

  // Views

  /** Spark fails at a view of a catalog whose name has no schema. */
  LogicalPlan view(SparkSession session, UnresolvedRelation relation, List path) {
    boolean named = relation.multipartIdentifier().size() == 2 && path.size() == 1;
    if (!named || !Boolean.TRUE.equals(answer(new Object[] {"is_view", path.get(0)}))) return null;
    List full = Arrays.asList(new Object[] {name(), DEFAULT_SCHEMA, path.get(0)});
    return new UnresolvedRelation(Lakes.seq(full), relation.options(), relation.isStreaming());
  }

  void checkViewStatement(SparkSession session, Seq name) {}

  public Identifier[] listViews(String[] namespace) throws NoSuchNamespaceException {
    return identifiers(namespace, "views");
  }
  public boolean viewExists(Identifier identifier) { return view(identifier) != null; }

  public View loadView(Identifier identifier) throws NoSuchViewException {
    View found = view(identifier);
    if (found == null) throw new NoSuchViewException(identifier);
    return found;
  }

  private View view(Identifier identifier) {
    if (identifier.namespace().length > 1) return null;
    Object answer = answer(question("view", identifier));
    return answer == null ? null : noted(view(Lakes.map(answer)), Lakes.map(answer));
  }

  private Object[] question(String verb, Identifier identifier) {
    return new Object[] {verb, name(), schema(identifier), identifier.name()};
  }

  private View noted(View view, Map about) {
    ReadLakeTables.note(lake(), about.get("note"));
    return view;
  }

  private static View view(Map about) {
    StructType schema = Lakes.schema((String) about.get("schema"));
    View.Builder builder = new View.Builder();
    builder.withColumns(CatalogV2Util.structTypeToV2Columns(schema, true));
    builder.withQueryText((String) about.get("sql"));
    builder.withCurrentCatalog((String) about.get("catalog"));
    builder.withCurrentNamespace(new String[] {(String) about.get("namespace")});
    // Without settings of its own, a view would be read under Spark's defaults, and not under the session's.
    Map settings = new LinkedHashMap(scala.jdk.javaapi.CollectionConverters.asJava(SQLConf.get().getAllConfs()));
    settings.putAll((Map) about.get("settings"));
    builder.withSqlConfigs(settings);
    builder.withSchemaMode("BINDING");
    builder.withQueryColumnNames((String[]) ((List) about.get("columns")).toArray(new String[0]));
    builder.withProperties((Map) about.get("properties"));
    return builder.build();
  }

  private Object[] definition(String verb, Identifier identifier, View view) {
    LinkedHashMap where = new LinkedHashMap();
    where.put("own", Boolean.valueOf(name().equals(view.currentCatalog())));
    where.put("catalog", view.currentCatalog());
    where.put("namespace", view.currentNamespace());
    where.put("columns", view.queryColumnNames());
    where.put("lake", name());
    return new Object[] {
      verb, Lakes.json(identifier.namespace()), identifier.name(), view.queryText(), Lakes.json(where),
      view.schema().json(), Lakes.json(view.properties())
    };
  }

  public View createView(Identifier identifier, View view) throws ViewAlreadyExistsException, NoSuchNamespaceException {
    try {
      ask(definition("create_view", identifier, view));
    } catch (LakeException e) {
      if (e.is("exists")) throw new ViewAlreadyExistsException(identifier);
      if (e.is("no_schema")) throw new NoSuchNamespaceException(identifier.namespace());
      throw Lakes.raised(e);
    }
    return view;
  }

  public View replaceView(Identifier identifier, View view) throws NoSuchViewException {
    loadView(identifier);
    answer(definition("replace_view", identifier, view));
    return view;
  }

  public boolean dropView(Identifier identifier) {
    if (identifier.namespace().length > 1) return false;
    return ((Boolean) answer(new Object[] {"drop_view", schema(identifier), identifier.name()})).booleanValue();
  }

  public void renameView(Identifier from, Identifier to) throws NoSuchViewException, ViewAlreadyExistsException {
    loadView(from);
    try {
      ask(new Object[] {"rename_view", schema(from), from.name(), Lakes.json(to.namespace()), to.name()});
    } catch (LakeException e) {
      if (e.is("exists")) throw new ViewAlreadyExistsException(to);
      throw Lakes.raised(e);
    }
  }

  // The change feed

  public Changelog loadChangelog(Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    load(identifier, null, null);
    ChangelogRange range = context.range();
    String mode = context.deduplicationMode().toString();
    Object[] question = {
      "changes", schema(identifier), identifier.name(), null, null, Boolean.TRUE, Boolean.TRUE, mode
    };
    if (range instanceof ChangelogRange.VersionRange) {
      question[3] = ((ChangelogRange.VersionRange) range).startingVersion();
      question[4] = ((ChangelogRange.VersionRange) range).endingVersion().orElse(null);
    } else if (range instanceof ChangelogRange.TimestampRange) {
      question[3] = Long.valueOf(((ChangelogRange.TimestampRange) range).startingTimestamp());
      question[4] = ((ChangelogRange.TimestampRange) range).endingTimestamp().orElse(null);
    }
    if (!(range instanceof ChangelogRange.UnboundedRange)) {
      question[5] = Boolean.valueOf(range.startingBoundInclusive());
      question[6] = Boolean.valueOf(range.endingBoundInclusive());
    }
    return new Changes(lake(), name() + "." + identifier.toString(), Lakes.map(answer(question)));
  }

  public static class Changes implements Changelog, LakeRows {
    private final String lake;
    private final String name;
    private final Map about;
    Changes(String lake, String name, Map about) {
      this.lake = lake;
      this.name = name;
      this.about = about;
    }
    public String lake() { return lake; }
    public String name() { return name; }
    public Column[] columns() {
      return CatalogV2Util.structTypeToV2Columns(Lakes.schema((String) about.get("schema")), true);
    }
    public boolean containsCarryoverRows() { return false; }
    public boolean containsIntermediateChanges() { return Boolean.TRUE.equals(about.get("row_ids")); }
    public NamedReference[] rowId() { return new NamedReference[] {Expressions.column(LakeTable.ROW_ID)}; }
    // Janino leaves out this default method of the interface.
    public NamedReference rowVersion() { return Expressions.column("_commit_version"); }
    public boolean representsUpdateAsDeleteAndInsert() { return false; }
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      throw new UnsupportedOperationException("this session was not told of the lake by Penstock; attach it there");
    }
    public Object rows(String pin, boolean rowIds) {
      return Lakes.answer(lake, new Object[] {"changed_rows", about.get("handle")});
    }
    public boolean isSettled(String pin) { return false; }
  }
}
