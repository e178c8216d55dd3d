package penstock;

import java.lang.reflect.Field;
import java.util.PrimitiveIterator;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.parquet.ParquetRowIndexUtil$RowIndexGenerator;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;

/** Numbers the rows of a file for Spark's reader as its own generator does, but without objects for each of them. */
public class RowNumbers extends ParquetRowIndexUtil$RowIndexGenerator {
  private long first;  // of the row group
  private long next;  // in the row group
  private PrimitiveIterator.OfLong chosen;  // those of pages that are read, where others are skipped

  RowNumbers(int place) { super(place); }

  /** Let a reader of batches number its rows so; one that is made in another way keeps Spark's generator. */
  public static void install(Object rows, int place) {
    try {
      Field of = RecordReaderIterator.class.getDeclaredField("rowReader");
      of.setAccessible(true);
      Object reader = of.get(rows);
      Field generator = VectorizedParquetRecordReader.class.getDeclaredField("rowIndexGenerator");
      generator.setAccessible(true);
      if (generator.get(reader) != null) generator.set(reader, new RowNumbers(place));
    } catch (NoSuchFieldException e) {
      return;
    } catch (IllegalAccessException e) {
      return;
    } catch (IllegalArgumentException e) {  // it reads rows, not batches
      return;
    }
  }

  public void initFromPageReadStore(PageReadStore pages) {
    if (!pages.getRowIndexOffset().isPresent()) super.initFromPageReadStore(pages);  // its error
    first = ((Long) pages.getRowIndexOffset().get()).longValue();
    next = 0;
    chosen = (PrimitiveIterator.OfLong) pages.getRowIndexes().orElse(null);
  }

  public void populateRowIndex(WritableColumnVector numbers, int count) {
    for (int i = 0; i < count; i++) numbers.putLong(i, first + (chosen == null ? next++ : chosen.nextLong()));
  }
}
