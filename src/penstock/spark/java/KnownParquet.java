package penstock;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Spark's own Parquet reader, which tells our file systems what the catalog knows of the file that it opens, and numbers
 * the rows of a file fast where that is wanted.
 */
public class KnownParquet extends ParquetFileFormat {
  static final String ROW_INDEX = "_tmp_metadata_row_index";  // as in relation.py
  private static final int NONE = -1;

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType columns, StructType constants, StructType wanted, Seq filters, Map options,
      Configuration hadoop) {
    return new Reader(
        super.buildReaderWithPartitionValues(session, columns, constants, wanted, filters, options, hadoop),
        wanted.getFieldIndex(ROW_INDEX).isDefined() ? wanted.fieldIndex(ROW_INDEX) : NONE);
  }

  private static class Reader extends AbstractFunction1 implements Serializable {
    private final Function1 reader;
    private final int numbers;

    Reader(Function1 reader, int numbers) {
      this.reader = reader;
      this.numbers = numbers;
    }

    public Object apply(Object file) {
      KnownFile.set(((PartitionedFile) file).toPath(), ((PartitionedFile) file).fileSize());
      try {
        Object rows = reader.apply(file);
        if (numbers != NONE) RowNumbers.install(rows, numbers);
        return rows;
      } finally {
        KnownFile.forget();
      }
    }
  }
}
