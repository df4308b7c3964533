/**
 * Deletes numbered objects on any server, and waits until they are gone.
 *
 *     node bench/delete.ts --kubeconfig F --count 100000
 *     node bench/delete.ts --kubeconfig F --resource nodes --prefix kwok-node- --skip 5 --count 50
 */
import {
  flagsOf,
  LOAD,
  loadNumbers,
  namespaceOf,
  needed,
  prefixOf,
  usage,
  whole,
} from './load/flags.ts';
import { judgeDelete, judgeGone, openClients, printResult, runLoad } from './load/requests.ts';
import { writeResults } from './harness.ts';

/** Collections by their names; `{namespace}` is filled in. */
const PATHS: Readonly<Record<string, string>> = {
  pods: '/api/v1/namespaces/{namespace}/pods',
  nodes: '/api/v1/nodes',
  configmaps: '/api/v1/namespaces/{namespace}/configmaps',
  deployments: '/apis/apps/v1/namespaces/{namespace}/deployments',
  jobs: '/apis/batch/v1/namespaces/{namespace}/jobs',
  leases: '/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases',
};
const values = flagsOf(
  {
    ...LOAD,
    prefix: { type: 'string', default: 'res-' },
    clients: { type: 'string', default: '10' },
    resource: { type: 'string', default: 'pods' },
    namespace: { type: 'string', default: 'default' },
    /** Seconds of grace; '' for what the object says. */
    grace: { type: 'string', default: '' },
    'no-wait': { type: 'boolean', default: false },
  },
  `bench delete: deletes ${Object.keys(PATHS).join(', ')} by their numbers`,
);
const found = PATHS[values.resource];
if (found === undefined) usage(`--resource: one of ${Object.keys(PATHS).join(', ')} is needed`);
const path = (found ?? '').replace('{namespace}', namespaceOf(values.namespace));
const numbers = loadNumbers(values);
prefixOf('prefix', values.prefix, numbers.first + numbers.count);
const body =
  values.grace === ''
    ? '{"propagationPolicy":"Background"}'
    : `{"propagationPolicy":"Background","gracePeriodSeconds":${whole('grace', values.grace)}}`;
const clients = await openClients(
  needed('kubeconfig', values.kubeconfig),
  numbers.clients,
  numbers.inFlight,
);
const GONE_ALREADY = 'gone already';
const range = { ...numbers, clients };
const pathOf = (index: number): string => `${path}/${values.prefix}${index}`;
const deleted = await runLoad({
  ...range,
  what: `${values.resource} deleted`,
  already: GONE_ALREADY,
  shot: (index) => ({ method: 'DELETE', path: pathOf(index), body }),
  judge: judgeDelete,
});
printResult('deleted', deleted, GONE_ALREADY);
let goneSeconds: number | undefined;
if (!values['no-wait']) {
  const gone = await runLoad({
    ...range,
    rate: 0,
    what: `${values.resource} gone`,
    shot: (index) => ({ method: 'GET', path: pathOf(index), body: null }),
    judge: judgeGone,
  });
  printResult('gone', gone);
  goneSeconds = gone.seconds;
}
writeResults(values.output, { deletedSeconds: deleted.seconds, goneSeconds });
for (const client of clients) client.close();
