package penstock.sql;

/** Something whose rows are an optimized plan that Python makes. */
public interface LakeRows {
  String lake();

  /** The plan, as of the snapshot that the whole query sees. */
  Object rows(String pin, boolean rowIds);
}
