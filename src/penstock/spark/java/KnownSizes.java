package penstock;

import java.io.IOException;
import java.net.URI;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.FutureDataInputStreamBuilderImpl;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * A file system that does not ask its store for the size of a file that the catalog knows: Spark's reader does, each time
 * that it opens one. All else is done by the store's own file system. Hadoop would keep that with the settings of whoever
 * was first; here one is kept for each set of settings, so that a bucket can be given new keys while queries run.
 */
public class KnownSizes extends FilterFileSystem {
  private static final String OWN = "penstock.fs.";  // before a scheme: the class of the store's own file system
  private static final String SETTINGS = "penstock.settings.";  // before a bucket: a digest of its settings
  private static final int KEPT = 32;
  private static final Map OPENED = new LinkedHashMap(16, 0.75f, true) {
    protected boolean removeEldestEntry(Map.Entry eldest) { return size() > KEPT; }  // not closed: a query may use it
  };

  public void initialize(URI name, Configuration hadoop) throws IOException {
    fs = opened(name, hadoop);
    setConf(hadoop);
  }

  private static FileSystem opened(URI name, Configuration hadoop) throws IOException {
    String own = hadoop.get(OWN + name.getScheme());
    String user = UserGroupInformation.getCurrentUser().toString();
    String key = String.join("\n", new String[] {
        user, name.getScheme(), name.getAuthority(), own, hadoop.get(SETTINGS + name.getAuthority(), "")});
    synchronized (OPENED) {
      FileSystem found = (FileSystem) OPENED.get(key);
      if (found == null) {
        found = made(name, own, hadoop);
        OPENED.put(key, found);
      }
      return found;
    }
  }

  private static FileSystem made(URI name, String own, Configuration hadoop) throws IOException {
    Configuration settings = new Configuration(hadoop);
    settings.set("fs." + name.getScheme() + ".impl", own);
    settings.unset("fs." + name.getScheme() + ".impl.disable.cache");
    FileSystem made;
    try {
      made = (FileSystem) ReflectionUtils.newInstance(settings.getClassByName(own), settings);
    } catch (ClassNotFoundException e) {
      throw new IOException("no file system " + own, e);
    }
    made.initialize(name, settings);
    return made;
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    FileStatus known = KnownFile.status(path);
    return known == null ? super.getFileStatus(path) : known;
  }

  public FutureDataInputStreamBuilder openFile(Path path) throws IOException {
    FileStatus known = KnownFile.status(path);
    return known == null ? super.openFile(path) : new Opening(fs, known);
  }

  /** The opening of a file of known size: all that the reader asks for is passed on. */
  private static class Opening extends FutureDataInputStreamBuilderImpl implements Function {
    private final FileStatus known;

    Opening(FileSystem own, FileStatus known) {
      super(own, known.getPath());
      this.known = known;
    }

    public CompletableFuture build() throws IOException {
      FutureDataInputStreamBuilder own = getFS().openFile(known.getPath());
      Iterator options = getOptions().iterator();
      while (options.hasNext()) {
        Map.Entry option = (Map.Entry) options.next();
        String name = (String) option.getKey();
        if (getMandatoryKeys().contains(name)) own.must(name, (String) option.getValue());
        else own.opt(name, (String) option.getValue());
      }
      return ((CompletableFuture) own.withFileStatus(known).build()).thenApply(this);
    }

    public Object apply(Object bytes) {
      return new FSDataInputStream(new KnownStream((FSDataInputStream) bytes, known.getLen()));
    }
  }

  public void close() {}  // what it passes everything to is others' too
}
