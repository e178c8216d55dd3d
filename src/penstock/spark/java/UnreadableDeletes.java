package penstock;

/**
 * Which rows of a file are deleted is not known. Neither a RuntimeException nor an IOException: those Spark's user may have
 * it ignore, and rows would be lost or come back.
 */
public class UnreadableDeletes extends Exception {
  public UnreadableDeletes(String message, Throwable cause) { super(message, cause); }
}
