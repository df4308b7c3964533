/** What would have to change for a node to take a pod: a line for each thing in the way. */
import { ownMember } from '@megaplane/base/members';
import { RequiredNodes, matchesTerm, parseTerm } from '../api/node-selector.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { SpreadConstraint, Taint, Toleration } from '../api/objects.ts';
import { selectorOf, selects, type PodInfo, type PodTerm } from '../framework/pod-info.ts';
import { amountIn } from '../api/resources.ts';
import type { Snapshot } from '../framework/snapshot.ts';

const MIB: number = 1024 * 1024;
const BYTES = new Set(['memory', 'ephemeral-storage']);
const REPELLENT = new Set(['NoSchedule', 'NoExecute']);

type Remedy = (pod: PodInfo, node: NodeInfo, snapshot: Snapshot) => string[];

function amountText(resource: string, amount: number): string {
  if (resource === 'cpu') return `${amount}m`;
  return BYTES.has(resource) ? `${Math.ceil(amount / MIB)}Mi` : String(amount);
}

function shortages(pod: PodInfo, node: NodeInfo): string[] {
  const { milliCpu, memory, ephemeral, scalars } = pod.requests;
  const wanted: [string, number][] = [
    ['cpu', milliCpu],
    ['memory', memory],
    ['ephemeral-storage', ephemeral],
    ...scalars,
  ];
  const lines: string[] = [];
  if (node.pods.length >= node.allocatablePods) {
    lines.push(
      `${node.pods.length} of ${node.allocatablePods} pods are there: one would have to go`,
    );
  }
  for (const [name, amount] of wanted) {
    const capacity = amountIn(node.allocatable, name);
    const free = capacity - amountIn(node.requested, name);
    if (amount === 0 || amount <= free) continue;
    const asked = `asks for ${amountText(name, amount)} of ${name}`;
    const left = `${amountText(name, Math.max(0, free))} of ${amountText(name, capacity)} are free`;
    const verdict =
      amount > capacity
        ? 'the whole node is too small'
        : `${amountText(name, amount - Math.max(0, free))} are missing`;
    lines.push(`${asked}, ${left}: ${verdict}`);
  }
  return lines;
}

function tolerates(toleration: Toleration, taint: Taint): boolean {
  const { key = '', operator = 'Equal', value = '', effect = '' } = toleration;
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  return operator === 'Exists' || (key !== '' && value === (taint.value ?? ''));
}

function taints({ pod }: PodInfo, { node }: NodeInfo): string[] {
  return (node.spec?.taints ?? [])
    .filter(({ effect }) => REPELLENT.has(effect))
    .filter((taint) => !(pod.spec.tolerations ?? []).some((one) => tolerates(one, taint)))
    .map(({ key, value = '', effect }) => {
      const text = value === '' ? `${key}:${effect}` : `${key}=${value}:${effect}`;
      return `taint ${text}: the pod would have to tolerate it, or the node lose it`;
    });
}

function labels(pod: PodInfo, node: NodeInfo): string[] {
  const { spec } = pod.pod;
  const lines: string[] = [];
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) {
    const found = node.labels[key];
    if (found === value) continue;
    const has = found === undefined ? `has no label ${key}` : `has ${key}=${found}`;
    lines.push(`nodeSelector wants ${key}=${value}, the node ${has}`);
  }
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const withoutSelector = new RequiredNodes({ ...pod.pod, spec: { ...spec, nodeSelector: {} } });
  if (required === undefined || withoutSelector.matches(node)) return lines;
  for (const term of required.nodeSelectorTerms ?? []) {
    const parts = [
      ...(term.matchExpressions ?? []).map((one) => ({ matchExpressions: [one] })),
      ...(term.matchFields ?? []).map((one) => ({ matchFields: [one] })),
    ];
    const failing = parts.filter((part) => !matchesTerm(parseTerm(part), node));
    const texts = failing.map((part) => {
      const [one] = 'matchExpressions' in part ? part.matchExpressions : part.matchFields;
      const values = (one?.values ?? []).join(', ');
      return `${one?.key ?? ''} ${one?.operator ?? ''}${values === '' ? '' : ` (${values})`}`;
    });
    lines.push(`node affinity: the node would have to satisfy ${texts.join(' and ')}`);
  }
  return lines;
}

function ports(pod: PodInfo, node: NodeInfo): string[] {
  return pod.ports
    .filter((port) => node.isPortTaken(port))
    .map(({ port, protocol }) => {
      const holder = node.pods.find((other) =>
        other.ports.some((taken) => taken.port === port && taken.protocol === protocol),
      );
      return `host port ${port}/${protocol} is taken by pod ${holder?.key ?? 'unknown'}`;
    });
}

function spreadCounts(
  pod: PodInfo,
  { topologyKey, labelSelector, matchLabelKeys = [] }: SpreadConstraint,
  snapshot: Snapshot,
): Map<string, number> {
  const selector = selectorOf(labelSelector);
  const counts = new Map<string, number>();
  for (const node of snapshot.nodes) {
    const domain = node.labels[topologyKey];
    if (domain === undefined) continue;
    let count = counts.get(domain) ?? 0;
    for (const other of node.pods) {
      if (other.namespace !== pod.namespace || other.isTerminating) continue;
      const isAlike = matchLabelKeys.every((key) => other.labels[key] === pod.labels[key]);
      if (isAlike && selects(selector, other.labels)) count++;
    }
    counts.set(domain, count);
  }
  return counts;
}

function skews(pod: PodInfo, node: NodeInfo, snapshot: Snapshot): string[] {
  const hard = (pod.pod.spec.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  );
  return hard.flatMap((constraint) => {
    const { topologyKey, maxSkew } = constraint;
    const domain = node.labels[topologyKey];
    if (domain === undefined) return [`the node has no label ${topologyKey}`];
    const counts = spreadCounts(pod, constraint, snapshot);
    const isTooFew = counts.size < (constraint.minDomains ?? 1);
    const least = isTooFew ? 0 : Math.min(...counts.values());
    const here = counts.get(domain) ?? 0;
    const over = here + 1 - least - maxSkew;
    if (over <= 0) return [];
    const lowest = [...counts].filter(([, count]) => count === least).map(([name]) => name);
    const where = `${topologyKey}=${domain} has ${here} such pods`;
    const other = `${lowest.slice(0, 3).join(', ')} ${least}`;
    return [`${where}, ${other}, and maxSkew is ${maxSkew}: ${over} too many`];
  });
}

const NEIGHBOURS_SHOWN_MAX = 3;

function neighbours(term: PodTerm, node: NodeInfo, snapshot: Snapshot): string[] {
  const domain = node.labels[term.topologyKey];
  if (domain === undefined) return [];
  return snapshot.nodes
    .filter((other) => other.labels[term.topologyKey] === domain)
    .flatMap(({ pods }) => pods)
    .filter((other) => term.namespaces.has(other.namespace) && selects(term.selector, other.labels))
    .map(({ key }) => key);
}

function shown(names: readonly string[]): string {
  const more = names.length - NEIGHBOURS_SHOWN_MAX;
  const list = names.slice(0, NEIGHBOURS_SHOWN_MAX).join(', ');
  return more > 0 ? `${list} and ${more} more` : list;
}

function company(pod: PodInfo, node: NodeInfo, snapshot: Snapshot): string[] {
  const lines: string[] = [];
  for (const term of pod.requiredAffinity) {
    const domain = node.labels[term.topologyKey];
    if (domain === undefined) lines.push(`the node has no label ${term.topologyKey}`);
    else if (neighbours(term, node, snapshot).length === 0) {
      lines.push(`affinity: no pod that it wants near runs in ${term.topologyKey}=${domain}`);
    }
  }
  for (const term of pod.requiredAntiAffinity) {
    const found = neighbours(term, node, snapshot);
    if (found.length === 0) continue;
    lines.push(`anti-affinity on ${term.topologyKey}: ${shown(found)} would have to go`);
  }
  const shy = snapshot.nodes.flatMap((other) =>
    other.pods.filter((one) =>
      one.requiredAntiAffinity.some((term) => {
        const domain = other.labels[term.topologyKey];
        const isHere = domain !== undefined && domain === node.labels[term.topologyKey];
        const isMeant = term.namespaces.has(pod.namespace) && selects(term.selector, pod.labels);
        return isHere && isMeant;
      }),
    ),
  );
  if (shy.length > 0) {
    lines.push(`${shown(shy.map(({ key }) => key))} would have it nowhere near`);
  }
  return lines;
}

const REMEDIES: Readonly<Record<string, Remedy>> = {
  NodeUnschedulable: (_, { name }) => [`the node is cordoned: kubectl uncordon ${name}`],
  NodeResourcesFit: shortages,
  TaintToleration: taints,
  NodeAffinity: labels,
  NodePorts: ports,
  PodTopologySpread: skews,
  InterPodAffinity: company,
};

/** What would have to change for a plugin to take back its objection; empty where nobody knows. */
export function remediesOf(
  plugin: string,
  pod: PodInfo,
  node: NodeInfo,
  snapshot: Snapshot,
): readonly string[] {
  return ownMember(REMEDIES, plugin)?.(pod, node, snapshot) ?? [];
}
