package penstock;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.SerializableConfiguration;
import org.roaringbitmap.RoaringBitmap;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Spark's own Parquet reader of files that have lost rows. CatalogFileIndex says of each where its deleted positions are;
 * whoever opens it reads them first.
 */
public class ParquetWithDeletes extends KnownParquet {
  static final String DELETES = "_penstock_deletes";  // what the index says of a file, among its metadata
  private static final StructType NOTHING = new StructType();
  // By name: a third column of another writer is ignored, and a snapshot that is not there is NULL.
  private static final StructType POSITIONS = NOTHING
      .add("pos", DataTypes.LongType).add("_ducklake_internal_snapshot_id", DataTypes.LongType);

  public Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType columns, StructType constants, StructType wanted, Seq filters, Map options,
      Configuration hadoop) {
    Configuration own = new Configuration(hadoop);  // Spark writes into it what is read
    Function1 positions = super.buildReaderWithPartitionValues(
        session, POSITIONS, NOTHING, POSITIONS, (Seq) Nil$.MODULE$, options, own);
    JavaSparkContext context = JavaSparkContext.fromSparkContext(
        ((org.apache.spark.sql.classic.SparkSession) session).sparkContext());
    return new Reader(
        super.buildReaderWithPartitionValues(session, columns, constants, wanted, filters, options, hadoop),
        new DeletedPositions(positions, context.broadcast(new SerializableConfiguration(own))),
        wanted.fieldIndex(ROW_INDEX));  // the filter above the scan is on it: relation.py
  }

  private static class Reader extends AbstractFunction1 implements Serializable {
    private final Function1 reader;
    private final DeletedPositions deletes;
    private final int place;

    Reader(Function1 reader, DeletedPositions deletes, int place) {
      this.reader = reader;
      this.deletes = deletes;
      this.place = place;
    }

    public Object apply(Object file) {
      RoaringBitmap deleted = deleted((PartitionedFile) file);
      Object rows = reader.apply(file);
      return deleted.isEmpty() ? rows : new RowsLeft((Iterator) rows, deleted, place);
    }

    private RoaringBitmap deleted(PartitionedFile file) {
      try {
        return deletes.of((String) file.otherConstantMetadataColumnValues().apply(DELETES));
      } catch (Exception e) {
        Platform.throwException(new UnreadableDeletes(
            "the deleted rows of " + file.filePath() + " are not known: " + e.getMessage(), e));
        throw new IllegalStateException(e);
      }
    }
  }
}
