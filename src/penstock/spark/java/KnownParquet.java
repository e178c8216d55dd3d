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

/** Spark's own Parquet reader, which tells our file systems what the catalog knows of the file that it opens. */
public class KnownParquet extends ParquetFileFormat {
  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType columns, StructType constants, StructType wanted, Seq filters, Map options,
      Configuration hadoop) {
    return new Reader(
        super.buildReaderWithPartitionValues(session, columns, constants, wanted, filters, options, hadoop));
  }

  private static class Reader extends AbstractFunction1 implements Serializable {
    private final Function1 reader;

    Reader(Function1 reader) { this.reader = reader; }

    public Object apply(Object file) {
      KnownFile.set(((PartitionedFile) file).toPath(), ((PartitionedFile) file).fileSize());
      try {
        return reader.apply(file);
      } finally {
        KnownFile.forget();
      }
    }
  }
}
