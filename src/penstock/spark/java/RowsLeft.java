package penstock;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The rows of a file without the deleted ones. Of a batch no row can be taken out: the index of a deleted one becomes
 * negative, and a filter above the scan leaves it out.
 */
class RowsLeft extends AbstractIterator implements Closeable {
  private static final long DELETED = -1;
  private static final long MOST_POSITIONS = 1L << 32;

  private final Iterator rows;
  private final RoaringBitmap deleted;
  private final int place;
  private PeekableIntIterator ahead;
  private long reached = 0;
  private Object next;

  /** `place` is where among the columns the index of a row is. */
  RowsLeft(Iterator rows, RoaringBitmap deleted, int place) {
    this.rows = rows;
    this.deleted = deleted;
    this.place = place;
    this.ahead = deleted.getIntIterator();
  }

  public boolean hasNext() {
    while (next == null && rows.hasNext()) {
      Object read = rows.next();
      if (read instanceof ColumnarBatch) mark((ColumnarBatch) read);
      else if (isDeleted(((InternalRow) read).getLong(place))) continue;
      next = read;
    }
    return next != null;
  }

  public Object next() {
    if (!hasNext()) throw new java.util.NoSuchElementException();
    Object given = next;
    next = null;
    return given;
  }

  private void mark(ColumnarBatch batch) {
    int count = batch.numRows();
    if (count == 0) return;
    WritableColumnVector indexes = (WritableColumnVector) batch.column(place);
    long first = indexes.getLong(0);
    long last = indexes.getLong(count - 1);
    if (last - first == count - 1) {  // no page between them was skipped
      for (long found = reach(first); found <= last; found = reach(found + 1)) {
        indexes.putLong((int) (found - first), DELETED);
      }
      return;
    }
    for (int i = 0; i < count; i++) {
      if (isDeleted(indexes.getLong(i))) indexes.putLong(i, DELETED);
    }
  }

  private boolean isDeleted(long index) { return reach(index) == index; }

  /** The first deleted position at or after another one; one that no row has where there is none. */
  private long reach(long position) {
    if (position >= MOST_POSITIONS) return Long.MAX_VALUE;
    if (position < reached) ahead = deleted.getIntIterator();
    reached = position;
    ahead.advanceIfNeeded((int) position);
    return ahead.hasNext() ? Integer.toUnsignedLong(ahead.peekNext()) : Long.MAX_VALUE;
  }

  public void close() throws IOException {
    if (rows instanceof Closeable) ((Closeable) rows).close();
  }
}
