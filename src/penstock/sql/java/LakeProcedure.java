package penstock.sql;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A verb of the lake for CALL. Python answers with a DataFrame, whose few rows are the result. */
public class LakeProcedure implements UnboundProcedure, BoundProcedure {
  private final String lake;
  private final String name;
  private final Map about;

  LakeProcedure(String lake, String name, Map about) {
    this.lake = lake;
    this.name = name;
    this.about = about;
  }

  public String name() { return name; }
  public String description() { return (String) about.get("description"); }
  public BoundProcedure bind(StructType given) { return this; }
  public boolean isDeterministic() { return false; }

  public ProcedureParameter[] parameters() {
    List given = (List) about.get("parameters");
    ProcedureParameter[] all = new ProcedureParameter[given.size()];
    for (int i = 0; i < all.length; i++) {
      List one = (List) given.get(i); // name, type, the default as SQL or null
      ProcedureParameter.Builder builder =
          ProcedureParameter.in((String) one.get(0), DataType.fromDDL((String) one.get(1)));
      all[i] = (one.get(2) == null ? builder : builder.defaultValue((String) one.get(2))).build();
    }
    return all;
  }

  public Iterator call(InternalRow input) {
    ProcedureParameter[] parameters = parameters();
    ArrayList values = new ArrayList();
    for (int i = 0; i < parameters.length; i++) {
      DataType type = parameters[i].dataType();
      values.add(input.isNullAt(i) ? null : Values.plain(input.get(i, type), type));
    }
    Dataset rows = (Dataset) Lakes.answer(lake, new Object[] {"call", name, values});
    InternalRow[] all = rows.queryExecution().executedPlan().executeCollect();
    return Arrays.asList(new Object[] {new Rows(rows.schema(), all)}).iterator();
  }

  public static class Rows implements LocalScan {
    private final StructType schema;
    private final InternalRow[] rows;
    Rows(StructType schema, InternalRow[] rows) {
      this.schema = schema;
      this.rows = rows;
    }
    public StructType readSchema() { return schema; }
    public InternalRow[] rows() { return rows; }
  }
}
