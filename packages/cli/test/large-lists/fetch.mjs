// The same with Node's own fetch, or with the client of the Kubernetes project.
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const [way = '', kubeconfig = '', server = '', token = ''] = process.argv.slice(2);

async function withFetch() {
  const url = `${server}/api/v1/namespaces/default/configmaps`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Error(await answer.text());
  const encoding = answer.headers.get('content-encoding');
  if (encoding !== 'gzip') throw new Error(`it came as ${encoding}`);
  return (await answer.json()).items;
}

async function withClient() {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const api = config.makeApiClient(CoreV1Api);
  return (await api.listNamespacedConfigMap({ namespace: 'default' })).items;
}

const items = way === 'fetch' ? await withFetch() : await withClient();
const values = items.flatMap(({ data }) => Object.values(data ?? {}));
console.log(
  items.length,
  values.reduce((sum, value) => sum + value.length, 0),
);
