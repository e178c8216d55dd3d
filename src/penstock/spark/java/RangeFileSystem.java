package penstock;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** Files behind http and https, read by ranges: what Spark's reader of Parquet needs on executors, and no more. */
public class RangeFileSystem extends FileSystem {
  private static final int CONNECT_MILLISECONDS = 5000;
  private static final int READ_MILLISECONDS = 30000;
  private static final int ATTEMPTS = 3;
  private static final int FIRST_PAUSE_MILLISECONDS = 300;
  private static final int REDIRECTS = 5;
  // A footer with its length, or all of a small file.
  private static final int READ_AHEAD = 131072;
  // From a server that ignores ranges, more at once: it sends the file from its beginning each time.
  private static final int READ_AHEAD_WITHOUT_RANGES = 67108864;
  private static final String UNRESERVED = "-._~/=";

  private URI root;
  private Path working = new Path("/");

  public void initialize(URI name, Configuration settings) throws IOException {
    super.initialize(name, settings);
    setConf(settings);
    root = URI.create(name.getScheme() + "://" + name.getAuthority());
  }

  public URI getUri() { return root; }

  /** The size by the catalog's word, else by the server's. */
  public FileStatus getFileStatus(Path path) throws IOException {
    FileStatus known = KnownFile.status(path);
    if (known != null) return known;
    Path whole = makeQualified(path);
    return new FileStatus(length(url(whole)), false, 1, 134217728L, 0L, whole);
  }

  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return opened(getFileStatus(path));
  }

  /** Whoever has asked for the file's status gives it, so that it is not asked for again. */
  protected CompletableFuture openFileWithOptions(Path path, OpenFileParameters parameters) throws IOException {
    FileStatus known = parameters.getStatus();
    return CompletableFuture.completedFuture(opened(known != null ? known : getFileStatus(path)));
  }

  private FSDataInputStream opened(FileStatus status) throws IOException {
    return new FSDataInputStream(new Ranges(url(makeQualified(status.getPath())), status.getLen()));
  }

  /** Each letter of a path once, by its bytes: a path is no URL, and a `%` or `?` in it is a letter. */
  private URL url(Path path) throws IOException {
    byte[] letters = path.toUri().getPath().getBytes("UTF-8");
    StringBuilder text = new StringBuilder(root.toString());
    for (int i = 0; i < letters.length; i++) {
      int letter = letters[i] & 0xFF;
      boolean plain = letter < 128 && (Character.isLetterOrDigit(letter) || UNRESERVED.indexOf(letter) >= 0);
      if (plain) text.append((char) letter);
      else text.append(String.format("%%%02X", new Object[] {Integer.valueOf(letter)}));
    }
    return new URL(text.toString());
  }

  private static long length(URL url) throws IOException {
    HttpURLConnection head = answer(url, "HEAD", null);
    long length = head.getResponseCode() < 300 ? head.getContentLengthLong() : -1L;
    if (length >= 0) return length;
    HttpURLConnection first = answer(url, "GET", "bytes=0-0");
    try {
      String range = first.getHeaderField("Content-Range");
      if (first.getResponseCode() == 206 && range != null && range.matches(".*/[0-9]+")) {
        return Long.parseLong(range.substring(range.lastIndexOf('/') + 1));
      }
      length = first.getResponseCode() == 200 ? first.getContentLengthLong() : -1L;
    } finally {
      first.disconnect();
    }
    if (length < 0) throw new IOException("the server does not tell the size of " + url);
    return length;
  }

  /** What a server answers, at last: a file's content or why not. Raises for what no other way of asking would change. */
  private static HttpURLConnection answer(URL url, String method, String range) throws IOException {
    IOException failure = null;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) pause(attempt);
      try {
        HttpURLConnection answer = redirected(url, method, range);
        int code = answer.getResponseCode();
        if (code < 300 || (method.equals("HEAD") && code != 404 && code < 500)) return answer;
        if (code == 404 || code == 410) {
          URL other = new URL(url.toString().replace("%25", "%"));
          if (!other.toString().equals(url.toString())) return answerForDuckdb(url, other, method, range);
          throw new FileNotFoundException(refusal(code, url));
        }
        failure = new IOException(refusal(code, url));
        if (code != 408 && code != 429 && code < 500) break;
      } catch (FileNotFoundException error) {
        throw error;
      } catch (IOException error) {
        failure = new IOException(url + " cannot be read: " + error, error);
      }
    }
    throw failure;
  }

  /** DuckDB takes a `%` in a name for one before a code; a lake may be laid out for it. */
  private static HttpURLConnection answerForDuckdb(URL url, URL other, String method, String range) throws IOException {
    try {
      return answer(other, method, range);
    } catch (FileNotFoundException error) {
      throw new FileNotFoundException(refusal(404, url));
    }
  }

  private static String refusal(int code, URL url) {
    return "the server answers " + code + " for " + url + (code == 404 ? ": there is no such file" : "");
  }

  private static HttpURLConnection redirected(URL url, String method, String range) throws IOException {
    URL at = url;
    for (int i = 0; i <= REDIRECTS; i++) {
      HttpURLConnection connection = (HttpURLConnection) at.openConnection();
      connection.setRequestMethod(method);
      connection.setInstanceFollowRedirects(false); // it would not follow one from http to https
      connection.setConnectTimeout(CONNECT_MILLISECONDS);
      connection.setReadTimeout(READ_MILLISECONDS);
      connection.setRequestProperty("Accept-Encoding", "identity");
      if (range != null) connection.setRequestProperty("Range", range);
      int code = connection.getResponseCode();
      String next = connection.getHeaderField("Location");
      if (code < 301 || code > 308 || code == 304 || next == null) return connection;
      at = new URL(at, next);
      if (!at.getProtocol().startsWith("http")) throw new IOException("it is redirected to " + at.getProtocol());
    }
    throw new IOException("it is redirected more than " + REDIRECTS + " times");
  }

  private static void pause(int attempt) throws IOException {
    try {
      Thread.sleep((long) FIRST_PAUSE_MILLISECONDS << (attempt - 1));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted");
    }
  }

  /** The bytes of one file. What is read ahead is held until other bytes are. */
  static class Ranges extends FSInputStream {
    private final URL url;
    private final long length;
    private long position;
    private byte[] held = new byte[0];
    private long heldFrom;
    private boolean withoutRanges;

    Ranges(URL url, long length) {
      this.url = url;
      this.length = length;
    }

    public void seek(long to) throws IOException {
      if (to < 0 || to > length) throw new EOFException(url + " has " + length + " bytes, and no byte " + to);
      position = to;
    }

    public long getPos() { return position; }
    public boolean seekToNewSource(long to) { return false; }
    public int available() { return (int) Math.min(length - position, (long) Integer.MAX_VALUE); }

    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
    }

    public int read(byte[] into, int offset, int count) throws IOException {
      int got = read(position, into, offset, count);
      if (got > 0) position += got;
      return got;
    }

    public synchronized int read(long at, byte[] into, int offset, int count) throws IOException {
      if (count == 0) return 0;
      if (at < 0 || at >= length) return -1;
      int wanted = (int) Math.min((long) count, length - at);
      boolean isHeld = at >= heldFrom && at < heldFrom + held.length;
      if (!isHeld && wanted >= READ_AHEAD && !withoutRanges) {
        fetch(at, into, offset, wanted);
        return wanted;
      }
      if (!isHeld) hold(at);
      int from = (int) (at - heldFrom);
      int some = Math.min(wanted, held.length - from);
      System.arraycopy(held, from, into, offset, some);
      return some;
    }

    /** Near the end of the file, what is before it: footers are read from their ends. */
    private void hold(long at) throws IOException {
      int ahead = withoutRanges ? READ_AHEAD_WITHOUT_RANGES : READ_AHEAD;
      long from = Math.max(0L, Math.min(at, length - ahead));
      byte[] fresh = new byte[(int) Math.min((long) ahead, length - from)];
      fetch(from, fresh, 0, fresh.length);
      held = fresh;
      heldFrom = from;
    }

    private void fetch(long from, byte[] into, int offset, int count) throws IOException {
      IOException failure = null;
      for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt > 0) pause(attempt);
        HttpURLConnection answer = answer(url, "GET", "bytes=" + from + "-" + (from + count - 1));
        boolean whole = answer.getResponseCode() == 200;
        if (!whole) checkRange(answer, from);
        InputStream body = null;
        try {
          body = answer.getInputStream();
          if (whole) body.skipNBytes(from);
          if (body.readNBytes(into, offset, count) == count) {
            withoutRanges = whole && length > count;
            return;
          }
          failure = new EOFException("the server ended early in " + url);
        } catch (IOException error) {
          failure = new IOException(url + " cannot be read: " + error, error);
        } finally {
          if (whole) answer.disconnect(); // or the rest would be read to use the connection again
          else if (body != null) body.close();
        }
      }
      throw failure;
    }

    private void checkRange(HttpURLConnection answer, long from) throws IOException {
      String range = answer.getHeaderField("Content-Range");
      if (answer.getResponseCode() != 206 || range == null || !range.startsWith("bytes " + from + "-")) {
        throw new IOException("the server answers " + answer.getResponseCode() + " for bytes from " + from + " of " + url
            + ", and gives " + range);
      }
    }
  }

  private static IOException readOnly() {
    return new IOException("files behind http and https can only be read");
  }

  public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int bufferSize, short replication, long blockSize,
      Progressable progress) throws IOException {
    throw readOnly();
  }

  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) throws IOException {
    throw readOnly();
  }

  public boolean rename(Path from, Path to) throws IOException { throw readOnly(); }
  public boolean delete(Path path, boolean recursive) throws IOException { throw readOnly(); }
  public boolean mkdirs(Path path, FsPermission permission) throws IOException { throw readOnly(); }

  /** A server lists nothing; what is named is a file. */
  public FileStatus[] listStatus(Path path) throws IOException { return new FileStatus[] {getFileStatus(path)}; }

  public void setWorkingDirectory(Path directory) { working = directory; }
  public Path getWorkingDirectory() { return working; }
}
