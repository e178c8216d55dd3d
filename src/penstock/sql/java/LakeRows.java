package penstock.sql;

/** Something whose rows are a plan that Python makes. */
public interface LakeRows {
  String lake();

  /** The plan, as of the snapshot that the whole query sees. */
  Object rows(String pin, boolean rowIds);

  /** Whether it is a LakeTable with the same rows as long as Python tells the same pin. */
  boolean isSettled(String pin);
}
