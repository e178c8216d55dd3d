package penstock.sql;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/**
 * A lake as a catalog of Spark's, which makes it by the setting spark.sql.catalog.NAME. Python answers for it. What
 * differs between the releases of Spark is in the classes that extend it: LakeRelations, and LakeViews for 4.1.
 */
public abstract class LakeCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  static final String DEFAULT_SCHEMA = "main";
  private static final String PROCEDURES = "system";
  private String name;
  private String lake;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.lake = options.get("lake");
  }

  public String name() { return name; }
  public String[] defaultNamespace() { return new String[] {DEFAULT_SCHEMA}; }
  String lake() { return lake; }

  public Set capabilities() {
    HashSet all = new HashSet();
    all.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    return all;
  }

  Object ask(Object[] question) throws LakeException { return Lakes.ask(lake, question); }
  Object answer(Object[] question) { return Lakes.answer(lake, question); }

  static String schema(String[] namespace) { return namespace.length == 0 ? DEFAULT_SCHEMA : String.join(".", namespace); }
  static String schema(Identifier identifier) { return schema(identifier.namespace()); }

  // Schemas

  public String[][] listNamespaces() {
    List names = Lakes.list(answer(new Object[] {"schemas"}));
    String[][] all = new String[names.size()][];
    for (int i = 0; i < all.length; i++) all[i] = new String[] {(String) names.get(i)};
    return all;
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) return listNamespaces();
    loadNamespaceMetadata(namespace);
    return new String[0][];
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    Object about = namespace.length == 1 ? answer(new Object[] {"schema", namespace[0]}) : null;
    if (about == null) throw new NoSuchNamespaceException(namespace);
    return Lakes.map(about);
  }

  public void createNamespace(String[] namespace, Map metadata) throws NamespaceAlreadyExistsException {
    try {
      ask(new Object[] {"create_schema", Lakes.json(namespace), Lakes.json(metadata)});
    } catch (LakeException e) {
      if (e.is("exists")) throw new NamespaceAlreadyExistsException(namespace);
      throw Lakes.raised(e);
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
    answer(new Object[] {"alter_schema", namespace[0]});
  }

  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    loadNamespaceMetadata(namespace);
    answer(new Object[] {"drop_schema", namespace[0], Boolean.valueOf(cascade)});
    return true;
  }

  // Tables

  Identifier[] identifiers(String[] namespace, String verb) throws NoSuchNamespaceException {
    if (namespace.length > 0) loadNamespaceMetadata(namespace);
    List names = Lakes.list(answer(new Object[] {verb, schema(namespace)}));
    String[] own = new String[] {schema(namespace)};
    Identifier[] all = new Identifier[names.size()];
    for (int i = 0; i < all.length; i++) all[i] = Identifier.of(own, (String) names.get(i));
    return all;
  }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    return identifiers(namespace, "tables");
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException { return load(identifier, null, null); }
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, version, null);
  }
  public Table loadTable(Identifier identifier, long micros) throws NoSuchTableException {
    return load(identifier, null, Long.valueOf(micros));
  }

  /** Spark says itself what is not there, and IF EXISTS counts on it. */
  Table load(Identifier identifier, String version, Long micros) throws NoSuchTableException {
    Object about = null;
    if (identifier.namespace().length < 2) {
      about = answer(new Object[] {"table", schema(identifier), identifier.name(), version, micros});
    }
    if (about == null) throw new NoSuchTableException(identifier);
    return table(identifier, Lakes.map(about));
  }

  abstract Table table(Identifier identifier, Map about);

  /** What stands for a view in a query, before Spark looks its name up; null to leave the relation as it is. */
  abstract LogicalPlan view(SparkSession session, UnresolvedRelation relation, List path);

  /** An error where CREATE VIEW and DROP VIEW, for a view of this name, do not reach a catalog. */
  abstract void checkViewStatement(SparkSession session, Seq name);

  private static Object[] definition(String verb, Identifier identifier, Column[] columns, Transform[] by, Map more) {
    ArrayList transforms = new ArrayList();
    for (int i = 0; i < by.length; i++) transforms.add(transform(by[i]));
    String schema = CatalogV2Util.v2ColumnsToStructType(columns).json(); // with defaults and comments as metadata
    return new Object[] {
      verb, Lakes.json(identifier.namespace()), identifier.name(), schema, Lakes.json(transforms), Lakes.json(more)
    };
  }

  /** [name, argument...]: columns as lists of their parts, numbers as numbers. */
  private static List transform(Transform given) {
    ArrayList parts = new ArrayList();
    parts.add(given.name());
    for (int i = 0; i < given.arguments().length; i++) {
      Object argument = given.arguments()[i];
      if (argument instanceof org.apache.spark.sql.connector.expressions.NamedReference) {
        parts.add(((org.apache.spark.sql.connector.expressions.NamedReference) argument).fieldNames());
      } else if (argument instanceof org.apache.spark.sql.connector.expressions.Literal) {
        parts.add(((org.apache.spark.sql.connector.expressions.Literal) argument).value());
      } else parts.add(argument.toString());
    }
    return parts;
  }

  private Object define(Identifier identifier, Object[] question)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return ask(question);
    } catch (LakeException e) {
      if (e.is("exists")) throw new TableAlreadyExistsException(identifier);
      if (e.is("no_schema")) throw new NoSuchNamespaceException(identifier.namespace());
      throw Lakes.raised(e);
    }
  }

  public Table createTable(Identifier identifier, Column[] columns, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Object about = define(identifier, definition("create_table", identifier, columns, by, properties));
    return table(identifier, Lakes.map(about));
  }

  private StagedTable stage(String verb, Identifier identifier, Column[] columns, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Object about = define(identifier, definition(verb, identifier, columns, by, properties));
    return new LakeTable.Staged(lake, name, identifier, Lakes.map(about));
  }

  public StagedTable stageCreate(Identifier identifier, Column[] columns, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return stage("stage_create", identifier, columns, by, properties);
  }

  public StagedTable stageReplace(Identifier identifier, Column[] columns, Transform[] by, Map properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    load(identifier, null, null);
    try {
      return stage("stage_replace", identifier, columns, by, properties);
    } catch (TableAlreadyExistsException e) {
      throw Lakes.raised(e);
    }
  }

  public StagedTable stageCreateOrReplace(Identifier identifier, Column[] columns, Transform[] by, Map properties)
      throws NoSuchNamespaceException {
    try {
      return stage("stage_replace", identifier, columns, by, properties);
    } catch (TableAlreadyExistsException e) {
      throw Lakes.raised(e);
    }
  }

  public Table alterTable(Identifier identifier, TableChange[] changes) throws NoSuchTableException {
    ArrayList all = new ArrayList();
    for (int i = 0; i < changes.length; i++) all.add(TableChanges.told(changes[i]));
    Table before = load(identifier, null, null);
    boolean evolution = isEvolution();
    String verb = evolution ? "evolve_table" : "alter_table";
    answer(new Object[] {verb, schema(identifier), identifier.name(), Lakes.json(all)});
    return evolution ? before : load(identifier, null, null); // Spark loads it again itself
  }

  /** Whether the columns of a write WITH SCHEMA EVOLUTION are being added: they come with its rows, in one snapshot. */
  private static boolean isEvolution() {
    StackTraceElement[] callers = Thread.currentThread().getStackTrace();
    for (int i = 0; i < callers.length; i++) {
      if (callers[i].getClassName().contains("SchemaEvolution")) return true;
    }
    return false;
  }

  public boolean dropTable(Identifier identifier) {
    if (identifier.namespace().length > 1) return false;
    return ((Boolean) answer(new Object[] {"drop_table", schema(identifier), identifier.name()})).booleanValue();
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    load(from, null, null);
    try {
      ask(new Object[] {"rename_table", schema(from), from.name(), Lakes.json(to.namespace()), to.name()});
    } catch (LakeException e) {
      if (e.is("exists")) throw new TableAlreadyExistsException(to);
      throw Lakes.raised(e);
    }
  }

  // Procedures

  public UnboundProcedure loadProcedure(Identifier identifier) {
    String schema = identifier.namespace().length == 0 ? PROCEDURES : schema(identifier);
    Object about = answer(new Object[] {"procedure", schema, identifier.name()});
    return new LakeProcedure(lake, identifier.name(), Lakes.map(about));
  }

  public Identifier[] listProcedures(String[] namespace) {
    if (namespace.length > 0 && !schema(namespace).equals(PROCEDURES)) return new Identifier[0];
    List names = Lakes.list(answer(new Object[] {"procedures"}));
    Identifier[] all = new Identifier[names.size()];
    for (int i = 0; i < all.length; i++) all[i] = Identifier.of(new String[] {PROCEDURES}, (String) names.get(i));
    return all;
  }
}
