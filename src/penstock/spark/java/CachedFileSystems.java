package penstock;

import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;

/**
 * Takes file systems out of Hadoop's cache, which keeps them with the settings of whoever was first. They are not closed,
 * as queries that run may use them; Hadoop itself has no way for that.
 */
public class CachedFileSystems {
  public void forgetBucket(String bucket) throws Exception {
    Object cache = field(FileSystem.class, "CACHE").get(null);
    synchronized (cache) {
      Iterator keys = ((Map) field(cache.getClass(), "map").get(cache)).keySet().iterator();
      while (keys.hasNext()) {
        Object key = keys.next();
        String scheme = (String) field(key.getClass(), "scheme").get(key);
        String authority = (String) field(key.getClass(), "authority").get(key);
        if (scheme.startsWith("s3") && bucket.equalsIgnoreCase(authority)) keys.remove();
      }
    }
  }

  private static Field field(Class owner, String name) throws Exception {
    Field field = owner.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
