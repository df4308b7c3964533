/**
 * `/metrics/resources`: what each pod asks for and may take at most, as kube-scheduler tells it.
 *
 * Nobody but a scraper of this page wants a million names, limits and priorities, so that they are
 * not kept: pods are read from the API server page by page, once for each family.
 */
import type { Client } from '@megaplane/client/client';
import { valueAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Quantity } from '@megaplane/machinery/quantity';
import type { Container, PodObject } from '../api/objects.ts';
import { podAmounts } from '../api/resources.ts';

const PAGE_PODS = 500;
/** As kube-scheduler watches them: pods that are over ask for nothing. */
const SELECTOR = 'status.phase!=Succeeded,status.phase!=Failed';
const FAMILIES = [
  { name: 'kube_pod_resource_limit', help: 'What pods may take.', amounts: limitsOf },
  { name: 'kube_pod_resource_request', help: 'What pods ask for.', amounts: requestsOf },
] as const;

/** The page in pieces. Ends early, with a comment that says why, where nobody answers. */
export async function* podResourcesPage(client: Client): AsyncGenerator<string> {
  for (const { name, help, amounts } of FAMILIES) {
    let isFirst = true;
    for await (const pods of podPages(client)) {
      if (typeof pods === 'string') {
        yield `# ${pods}\n`;
        return;
      }
      const lines = pods.flatMap((pod) => podResourceLines(name, pod, amounts(pod)));
      if (lines.length === 0) continue;
      if (isFirst) yield `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
      isFirst = false;
      yield `${lines.join('\n')}\n`;
    }
  }
}

async function* podPages(client: Client): AsyncGenerator<readonly PodObject[] | string> {
  let token = '';
  do {
    const query = new URLSearchParams({ limit: String(PAGE_PODS), fieldSelector: SELECTOR });
    if (token !== '') query.set('continue', token);
    const path = `/api/v1/pods?${query.toString()}`;
    const answer = await client.request({ method: 'GET', path });
    if (!answer.ok) {
      yield answer.status.message ?? `no pods: ${answer.code}`;
      return;
    }
    yield podsOf(answer.object);
    const next = valueAt(valueAt(answer.object, 'metadata'), 'continue');
    token = typeof next === 'string' ? next : '';
  } while (token !== '');
}

function podsOf(list: JsonObject): readonly PodObject[] {
  const { items } = list;
  return Array.isArray(items) ? (items as unknown as PodObject[]) : [];
}

/** What is asked for by the spec; what a kubelet has granted is not looked at. */
export function requestsOf(pod: PodObject): ReadonlyMap<string, Quantity> {
  const { metadata, spec } = pod;
  return podAmounts({ metadata, spec }, {});
}

/** Like requests; overhead counts only where there is a limit. */
export function limitsOf({ metadata, spec }: PodObject): ReadonlyMap<string, Quantity> {
  const { overhead = {}, containers = [], initContainers = [], ...others } = spec;
  const limited = (container: Container): Container => ({
    ...container,
    resources: { requests: container.resources?.limits ?? {} },
  });
  const asRequests = {
    ...others,
    containers: containers.map(limited),
    initContainers: initContainers.map(limited),
    resources: { requests: spec.resources?.limits ?? {} },
  };
  const bare = podAmounts({ metadata, spec: asRequests }, {});
  const counted = Object.entries(overhead).filter(([name]) => (bare.get(name)?.digits ?? 0n) > 0n);
  return podAmounts(
    { metadata, spec: { ...asRequests, overhead: Object.fromEntries(counted) } },
    {},
  );
}

/** Lines of one family about one pod, by resource. */
export function podResourceLines(
  family: string,
  { metadata, spec }: PodObject,
  amounts: ReadonlyMap<string, Quantity>,
): string[] {
  const { nodeName = '', schedulerName = '', priority = '' } = spec;
  const { namespace = '', name } = metadata;
  const who = `namespace="${namespace}",node="${nodeName}",pod="${name}",priority="${priority}"`;
  const some = [...amounts].filter(([, { digits }]) => digits !== 0n);
  return some
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([resource, amount]) => {
      const unit = unitOf(resource);
      const labels = `${who},resource="${resource}",scheduler="${schedulerName}",unit="${unit}"`;
      return `${family}{${labels}} ${Number(amount.digits) * 10 ** amount.scale}`;
    });
}

function unitOf(resource: string): string {
  if (resource === 'cpu') return 'cores';
  if (/^(memory|storage|ephemeral-storage)$|^hugepages-/.test(resource)) return 'bytes';
  return resource.startsWith('attachable-volumes-') ? 'integer' : '';
}
