import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.util.Config;

/** Lists the config maps of the default namespace: how many, and how much they hold. */
public final class LargeList {
  public static void main(String[] args) throws Exception {
    CoreV1Api api = new CoreV1Api(Config.fromConfig(args[0]));
    int objects = 0;
    long characters = 0;
    for (V1ConfigMap map : api.listNamespacedConfigMap("default").execute().getItems()) {
      objects++;
      if (map.getData() == null) continue;
      for (String value : map.getData().values()) characters += value.length();
    }
    System.out.println(objects + " " + characters);
    System.exit(0);
  }
}
