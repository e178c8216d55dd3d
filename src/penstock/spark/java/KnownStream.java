package penstock;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.CanUnbuffer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.StreamCapabilities;

/**
 * The bytes of a Parquet file of known size, whose end is fetched with one request: a reader begins with its last eight
 * bytes, then wants the footer before them. A small file is fetched whole.
 */
class KnownStream extends FSInputStream implements StreamCapabilities, CanUnbuffer {
  private static final int WHOLE = 1 << 20;
  private static final int END = 1 << 17;

  private final FSDataInputStream bytes;
  private final long size;
  private final long endsFrom;
  private byte[] end;
  private long position;

  KnownStream(FSDataInputStream bytes, long size) {
    this.bytes = bytes;
    this.size = size;
    this.endsFrom = size <= WHOLE ? 0 : size - END;
  }

  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
  }

  public synchronized int read(byte[] into, int offset, int count) throws IOException {
    int got;
    if (position >= endsFrom) {
      got = fromEnd(position, into, offset, count);
    } else {
      bytes.seek(position);  // does nothing where the stream is there already: its requests go on
      got = bytes.read(into, offset, count);
    }
    if (got > 0) position += got;
    return got;
  }

  public synchronized int read(long at, byte[] into, int offset, int count) throws IOException {
    return at >= endsFrom ? fromEnd(at, into, offset, count) : bytes.read(at, into, offset, count);
  }

  public void readFully(long at, byte[] into, int offset, int count) throws IOException {
    if (at < endsFrom) {
      bytes.readFully(at, into, offset, count);
    } else if (read(at, into, offset, count) < count) {
      throw new EOFException("bytes " + at + " to " + (at + count) + " of a file of " + size);
    }
  }

  private int fromEnd(long at, byte[] into, int offset, int count) throws IOException {
    if (count == 0) return 0;
    if (at >= size) return -1;
    byte[] held = end();
    int some = (int) Math.min((long) count, size - at);
    System.arraycopy(held, (int) (at - endsFrom), into, offset, some);
    return some;
  }

  private synchronized byte[] end() throws IOException {
    if (end == null) {
      byte[] fetched = new byte[(int) (size - endsFrom)];
      bytes.readFully(endsFrom, fetched, 0, fetched.length);
      end = fetched;
    }
    return end;
  }

  public void readVectored(List ranges, IntFunction allocate) throws IOException {
    if (areAtEnd(ranges)) fromEnd(ranges, allocate);
    else bytes.readVectored(ranges, allocate);
  }

  public void readVectored(List ranges, IntFunction allocate, Consumer release) throws IOException {
    if (areAtEnd(ranges)) fromEnd(ranges, allocate);
    else bytes.readVectored(ranges, allocate, release);
  }

  private boolean areAtEnd(List ranges) {
    for (int i = 0; i < ranges.size(); i++) {
      FileRange range = (FileRange) ranges.get(i);
      if (range.getOffset() < endsFrom || range.getOffset() + range.getLength() > size) return false;
    }
    return true;
  }

  private void fromEnd(List ranges, IntFunction allocate) throws IOException {
    for (int i = 0; i < ranges.size(); i++) {
      FileRange range = (FileRange) ranges.get(i);
      ByteBuffer buffer = (ByteBuffer) allocate.apply(range.getLength());
      buffer.put(end(), (int) (range.getOffset() - endsFrom), range.getLength());
      buffer.flip();
      range.setData(CompletableFuture.completedFuture(buffer));
    }
  }

  public int minSeekForVectorReads() { return bytes.minSeekForVectorReads(); }
  public int maxReadSizeForVectorReads() { return bytes.maxReadSizeForVectorReads(); }

  public boolean hasCapability(String name) {
    return !READBYTEBUFFER.equals(name) && !PREADBYTEBUFFER.equals(name) && bytes.hasCapability(name);
  }

  public synchronized void seek(long to) throws IOException {
    if (to < 0 || to > size) throw new EOFException("byte " + to + " of a file of " + size);
    position = to;
  }

  public synchronized long getPos() { return position; }
  public boolean seekToNewSource(long to) { return false; }
  public synchronized int available() { return (int) Math.min(size - position, (long) Integer.MAX_VALUE); }
  public void unbuffer() { bytes.unbuffer(); }
  public void close() throws IOException { bytes.close(); }
}
