package penstock;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** The file that this thread is about to open, with the size that the catalog has of it: no store has to be asked. */
class KnownFile {
  private static final ThreadLocal STATUS = new ThreadLocal();

  static void set(Path path, long size) {
    STATUS.set(size <= 0 ? null : new FileStatus(size, false, 1, 134217728L, 0L, path));
  }

  static void forget() { STATUS.remove(); }

  /** What is known of a path, or null. */
  static FileStatus status(Path path) {
    FileStatus status = (FileStatus) STATUS.get();
    return status != null && status.getPath().equals(path) ? status : null;
  }
}
