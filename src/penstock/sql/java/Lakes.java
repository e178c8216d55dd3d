package penstock.sql;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Seq;

/**
 * The way to Python: each lake is a function of a list, [Java thread, transaction, verb, argument...], which goes as JSON
 * where there is nothing in it but text, whole numbers and booleans. Sessions and their clones make catalogs of their own
 * by settings, and all of them meet here.
 */
public final class Lakes {
  private static final String FAILED = "\u0001";
  private static final ConcurrentHashMap LAKES = new ConcurrentHashMap();
  private static final Map NAMES = new java.util.concurrent.ConcurrentHashMap();
  // Threads inherit it: that in which Spark serves toPandas is not the caller's.
  private static final InheritableThreadLocal WORK = new InheritableThreadLocal(); // Map of lake and transaction
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map SCHEMAS = java.util.Collections.synchronizedMap(new Latest());

  public static void register(String id, Function lake) { LAKES.put(id, lake); }

  public static void forget(String id) {
    LAKES.remove(id);
    KeptPlans.forget(id);
    NAMES.values().removeAll(java.util.Collections.singleton(id));
  }

  /** The transaction that this thread, and those that it starts, work for from now on; null for none. */
  public static void work(String id, String transaction) {
    Map mine = WORK.get() == null ? new HashMap() : new HashMap((Map) WORK.get());
    if (transaction == null) mine.remove(id);
    else mine.put(id, transaction);
    WORK.set(mine);
  }

  static boolean has(String id) { return LAKES.containsKey(id); }

  /** Names that a lake has in some session, for those that do not know it. */
  public static void name(String name, String id) { NAMES.put(name, id); }
  static boolean isName(String name) { return NAMES.containsKey(name); }

  /** What Python answers: null, a boolean, JSON text or a Java object. The caller's transaction goes along. */
  static Object ask(String id, Object[] question) throws LakeException {
    Function lake = (Function) LAKES.get(id);
    if (lake == null) throw new LakeException("", "the lake of this catalog was closed or detached; attach it again");
    ArrayList call = new ArrayList();
    call.add(Long.valueOf(Thread.currentThread().getId()));
    call.add(WORK.get() == null ? null : ((Map) WORK.get()).get(id));
    for (int i = 0; i < question.length; i++) call.add(question[i]);
    Object answer = lake.apply(isPlain(call) ? (Object) json(call) : call);
    if (!(answer instanceof String && ((String) answer).startsWith(FAILED))) return answer;
    String told = ((String) answer).substring(1);
    int end = told.indexOf(' ');
    throw new LakeException(told.substring(0, end), told.substring(end + 1));
  }

  /** Whether a list can travel as text: of a list itself, Python has to fetch each item. */
  private static boolean isPlain(List call) {
    for (int i = 0; i < call.size(); i++) {
      Object item = call.get(i);
      boolean whole = item instanceof Long || item instanceof Integer;
      if (!(item == null || whole || item instanceof String || item instanceof Boolean)) return false;
    }
    return true;
  }

  /** The same where Spark's interface declares no exception. */
  static Object answer(String id, Object[] question) {
    try {
      return ask(id, question);
    } catch (LakeException e) {
      throw raised(e);
    }
  }

  /** AnalysisException is checked, and most of Spark's interfaces do not declare it. Nothing is ever returned. */
  static RuntimeException raised(Throwable error) {
    Platform.throwException(error);
    return null;
  }

  static Map map(Object json) { return (Map) read(json, Map.class); }
  static List list(Object json) { return (List) read(json, List.class); }

  /** A schema from its JSON. Spark takes a millisecond to read one, and asks for a table twice in each query. */
  static StructType schema(String json) {
    StructType known = (StructType) SCHEMAS.get(json);
    if (known == null) SCHEMAS.put(json, known = (StructType) DataType.fromJson(json));
    return known;
  }

  private static Object read(Object json, Class kind) {
    try {
      return JSON.readValue((String) json, kind);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static String json(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A map that forgets what was used long ago. */
  static class Latest extends java.util.LinkedHashMap {
    Latest() { super(16, 0.75f, true); }
    protected boolean removeEldestEntry(Map.Entry eldest) { return size() > 256; }
  }

  static Seq seq(List list) { return scala.jdk.javaapi.CollectionConverters.asScala(list).toSeq(); }
}
