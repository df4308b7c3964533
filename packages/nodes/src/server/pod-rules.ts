/**
 * What kwok's files say about single pods: where their logs lie, what exec runs, where ports lead.
 *
 * Each kind comes in two forms: of one pod (`Logs`, by its name), and of the cluster
 * (`ClusterLogs`, by a selector). The pod's own form is asked first, and alone if there is one.
 * Within a form an item that names the container is better than the first one that names none.
 */
import { METADATA, type Field } from '../yaml/yaml-fields.ts';

/** One document: whom it is for, and its items. */
export interface PodRule<Item> {
  readonly scope:
    | { readonly kind: 'pod'; readonly namespace: string; readonly name: string }
    | {
        readonly kind: 'cluster';
        /** Empty: all. */
        readonly namespaces: readonly string[];
        readonly names: readonly string[];
      };
  readonly items: readonly Item[];
}

/** `none`: no rule is for the pod. `unnamed`: the pod's own rule says nothing of the container. */
export type Found<Item> =
  | { readonly kind: 'found'; readonly item: Item }
  | { readonly kind: 'none' }
  | { readonly kind: 'unnamed' };

/** The rules of one kind; keys are those of documents, so that a newer one replaces an older. */
export class PodRules<Item> {
  readonly #rules: Map<string, PodRule<Item>> = new Map();
  /** What holds where no rule says anything. */
  readonly #defaults: Map<string, PodRule<Item>> = new Map();

  put(key: string, rule: PodRule<Item>, isDefault = false): void {
    (isDefault ? this.#defaults : this.#rules).set(key, rule);
  }

  remove(key: string): void {
    this.#rules.delete(key);
  }

  /** The item for a pod; `names` are what an item is for, none for all, `name` is looked for. */
  find(
    namespace: string,
    pod: string,
    names: (item: Item) => readonly (string | number)[],
    name: string | number,
  ): Found<Item> {
    for (const { scope, items } of this.#rules.values()) {
      if (scope.kind !== 'pod' || scope.name !== pod || scope.namespace !== namespace) continue;
      const item = bestOf(items, names, name);
      return item === undefined ? { kind: 'unnamed' } : { kind: 'found', item };
    }
    for (const { scope, items } of [...this.#rules.values(), ...this.#defaults.values()]) {
      if (scope.kind !== 'cluster') continue;
      if (scope.namespaces.length > 0 && !scope.namespaces.includes(namespace)) continue;
      if (scope.names.length > 0 && !scope.names.includes(pod)) continue;
      const item = bestOf(items, names, name);
      if (item !== undefined) return { kind: 'found', item };
    }
    return { kind: 'none' };
  }
}

function bestOf<Item>(
  items: readonly Item[],
  names: (item: Item) => readonly (string | number)[],
  name: string | number,
): Item | undefined {
  const own = items.find((item) => names(item).includes(name));
  return own ?? items.find((item) => names(item).length === 0);
}

export interface LogItem {
  readonly containers: readonly string[];
  readonly logsFile: string;
  readonly previousLogsFile: string;
  /** A log that is followed even where nobody asks; kwok accepts it and does not look. */
  readonly follow: boolean;
}

export interface AttachItem {
  readonly containers: readonly string[];
  readonly logsFile: string;
}

export interface ExecItem {
  readonly containers: readonly string[];
  /** Null: the item says not where to run. */
  readonly local: {
    readonly workDir: string;
    readonly environment: Readonly<Record<string, string>>;
    readonly user: number | null;
    readonly group: number | null;
  } | null;
}

export interface HttpRoute {
  readonly location: string;
  readonly code: number;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly body: string;
}

export interface ForwardItem {
  readonly ports: readonly number[];
  readonly command: readonly string[];
  readonly target: { readonly address: string; readonly port: number } | null;
  readonly httpRoutes: readonly HttpRoute[];
}

/** Reads a rule of the kind `Logs` or `ClusterLogs`, by how its `list` and its items are read. */
export function readPodRule<Item>(
  document: Field,
  list: string,
  read: (item: Field) => Item,
): PodRule<Item> {
  const top = document.members(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
  const isOfCluster = top('kind').text('').startsWith('Cluster');
  const about = top('metadata').members(METADATA);
  const name = about('name').text();
  const spec = top('spec').members(isOfCluster ? [list, 'selector'] : [list]);
  const items = spec(list).items().map(read);
  if (!isOfCluster) {
    const namespace = about('namespace').text('default');
    return { scope: { kind: 'pod', namespace, name }, items };
  }
  const selector = spec('selector').members(['matchNamespaces', 'matchNames']);
  const namespaces = textsOf(selector('matchNamespaces'));
  return { scope: { kind: 'cluster', namespaces, names: textsOf(selector('matchNames')) }, items };
}

export function textsOf(list: Field): string[] {
  return list.items().map((item) => item.text());
}

export function readLog(field: Field): LogItem {
  const part = field.members(['containers', 'logsFile', 'previousLogsFile', 'follow']);
  return {
    containers: textsOf(part('containers')),
    logsFile: part('logsFile').text(''),
    previousLogsFile: part('previousLogsFile').text(''),
    follow: part('follow').flag(),
  };
}

export function readAttach(field: Field): AttachItem {
  const part = field.members(['containers', 'logsFile', 'mapping']);
  if (!part('mapping').isAbsent) throw part('mapping').error('is not supported; use logsFile');
  return { containers: textsOf(part('containers')), logsFile: part('logsFile').text() };
}

export function readExec(field: Field): ExecItem {
  const part = field.members(['containers', 'local', 'mapping']);
  if (!part('mapping').isAbsent) throw part('mapping').error('is not supported; use local');
  const containers = textsOf(part('containers'));
  if (part('local').isAbsent) return { containers, local: null };
  const local = part('local').members(['workDir', 'envs', 'securityContext']);
  const context = local('securityContext').members(['runAsUser', 'runAsGroup']);
  const number = (one: Field): number | null => (one.isAbsent ? null : one.number(0));
  const pairs = local('envs')
    .items()
    .map((one) => {
      const variable = one.members(['name', 'value']);
      return [variable('name').text(), variable('value').text('')] as const;
    });
  return {
    containers,
    local: {
      workDir: local('workDir').text(''),
      environment: Object.fromEntries(pairs),
      user: number(context('runAsUser')),
      group: number(context('runAsGroup')),
    },
  };
}

export function readForward(field: Field): ForwardItem {
  const part = field.members(['ports', 'command', 'target', 'httpRoutes', 'mapping']);
  if (!part('mapping').isAbsent) throw part('mapping').error('is not supported; use target');
  const command = textsOf(part('command'));
  const target = part('target').members(['address', 'port']);
  const hasTarget = !part('target').isAbsent;
  const httpRoutes = part('httpRoutes').items().map(readRoute);
  if (command.length === 0 && !hasTarget && httpRoutes.length === 0) {
    throw field.error('one of target, command, httpRoutes is expected');
  }
  return {
    ports: part('ports')
      .items()
      .map((port) => portOf(port)),
    command,
    target: hasTarget ? { address: target('address').text(), port: portOf(target('port')) } : null,
    httpRoutes,
  };
}

function portOf(field: Field): number {
  const port = field.number(-1);
  if (port < 0 || port > 65_535) throw field.error('a port from 0 to 65535 is expected');
  return port;
}

function readRoute(field: Field): HttpRoute {
  const part = field.members(['location', 'code', 'headers', 'body']);
  const code = part('code').number(200);
  if (code < 100 || code > 599) throw part('code').error('a status from 100 to 599 is expected');
  const headers = part('headers')
    .items()
    .map((one) => {
      const header = one.members(['name', 'value']);
      return { name: header('name').text(), value: header('value').text('') };
    });
  return { location: part('location').text(), code, headers, body: part('body').text('') };
}
