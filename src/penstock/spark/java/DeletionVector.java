package penstock;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32;
import org.roaringbitmap.RoaringBitmap;

/** Reads deletion vectors, as storage/deletion_vectors.py writes them. */
public class DeletionVector {
  private static final int MAGIC = 0xd1d33964;
  private static final int AROUND = 8;  // bytes before and after magic and bitmap: their length and their checksum

  public static RoaringBitmap decode(byte[] blob) throws IOException {
    if (blob.length < AROUND + 4 || ByteBuffer.wrap(blob).getInt(4) != MAGIC) {
      throw new IOException("it is not a deletion vector: it does not begin as one");
    }
    int length = ByteBuffer.wrap(blob).getInt(0);
    if (length < 4 || length > blob.length - AROUND) throw new IOException("it is damaged: it ends too early");
    CRC32 checksum = new CRC32();
    checksum.update(blob, 4, length);
    if ((int) checksum.getValue() != ByteBuffer.wrap(blob).getInt(4 + length)) {
      throw new IOException("it is damaged: its checksum does not match its contents");
    }
    return bitmap(new DataInputStream(new ByteArrayInputStream(blob, AROUND, length - 4)));
  }

  /** A bitmap of 64 bits: bitmaps of 32 bits, each after what their positions have above those. */
  private static RoaringBitmap bitmap(DataInputStream in) throws IOException {
    RoaringBitmap positions = new RoaringBitmap();
    long parts = Long.reverseBytes(in.readLong());
    for (long i = 0; i < parts; i++) {
      if (in.readInt() != 0) throw new IOException("it has positions from 2^32 on, and no file has as many rows");
      positions.deserialize(in);
    }
    return positions;
  }
}
