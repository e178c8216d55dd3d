package penstock;

/** What Python raised when it was asked for files; the number in brackets tells Python which error it was. */
public class PlanningException extends RuntimeException {
  public PlanningException(String message) { super(message); }
}
