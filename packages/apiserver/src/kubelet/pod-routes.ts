/**
 * The ways into a running pod and to a node: logs, exec, attach, port-forward and the proxies. This
 * says where each request goes, in upstream's words where it goes nowhere; the relay of the shell
 * takes it there.
 */
import { isIP } from 'node:net';
import { forbiddenField, invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  badRequest,
  failed,
  invalid,
  notFound,
  serviceUnavailable,
  success,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { parseTime, timeFailure } from '@megaplane/machinery/times';
import { attributesOf, denial, whenDecided } from '../authorization/authorization.ts';
import type { Call } from '../request/call.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf, rangeOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import { defineSubresource, type SubresourceContext } from '../handlers/subresource.ts';
import type { World } from '../lister/world.ts';
import { readStored } from '../handlers/writing.ts';
import { kubeletOf } from './kubelet-address.ts';
import { isProxyable } from './proxyable-address.ts';
import { proxiedPath, splitSchemeNamePort, type SchemeNamePort } from '../request/proxied-path.ts';
import type { Relay, Target } from '../webhook/target.ts';

const row = emptyRow();
const ENDPOINTS = { group: '', name: 'endpoints' } as const;
const PROXY_VERBS = ['get', 'create', 'update', 'patch', 'delete'] as const;

/** Registers them. */
export function definePodRoutes(): void {
  defineSubresource('pods/log', 'get', readLog);
  for (const [name, run] of [
    ['exec', runIn],
    ['attach', runIn],
    ['portforward', forward],
  ] as const) {
    for (const verb of ['get', 'create']) defineSubresource(`pods/${name}`, verb, run);
  }
  for (const verb of PROXY_VERBS) {
    defineSubresource('pods/proxy', verb, proxyPod);
    defineSubresource('nodes/proxy', verb, proxyNode);
    defineSubresource('services/proxy', verb, proxyService);
  }
}

/** Subresources whose body, if there is one, belongs to who is behind them. */
export function isPassedOn(subresource: string): boolean {
  return ['exec', 'attach', 'portforward', 'proxy', 'log'].includes(subresource);
}

function relayOf({ services, call }: SubresourceContext): Relay | null {
  const { relay } = services;
  if (relay === null) {
    call.fail(serviceUnavailable('this server has no way to kubelets and pods'));
  }
  return relay;
}

/** The pod that the request names; answers where there is none. */
function podOf(context: SubresourceContext): JsonObject | null {
  const { call, world, served } = context;
  const stored = readStored(world, call, served);
  if (stored !== null) return stored.object;
  call.fail(notFound(served.plural, call.info.name));
  return null;
}

/** Sends the request on to `path` at the kubelet of `node`. */
function toKubelet(
  context: SubresourceContext,
  node: string,
  path: string,
  more: Partial<Target>,
): void {
  const relay = relayOf(context);
  if (relay === null) return;
  const { call, world } = context;
  const kubelet = kubeletOf(world, node, relay.kubelets, context.served.plural);
  if (!kubelet.ok) {
    call.fail(kubelet.status);
    return;
  }
  relay.pass(call, {
    peer: 'kubelet',
    isTls: true,
    ...kubelet.value,
    path,
    needsUpgrade: false,
    resource: `${call.info.resource}/${call.info.subresource}`,
    name: call.info.name,
    wrapsFailures: false,
    isInsecure: false,
    ...more,
  });
}

/** Parameters of PodLogOptions that the kubelet takes. */
const LOG_PARAMETERS = [
  'follow',
  'limitBytes',
  'previous',
  'sinceSeconds',
  'sinceTime',
  'tailLines',
  'timestamps',
] as const;

/** What is wrong with the PodLogOptions in a query; null for nothing. */
function logFault({ call }: SubresourceContext): Status | null {
  const { query } = call;
  const { name } = call.info;
  const sinceTime = query.text('sinceTime');
  if (sinceTime !== '' && parseTime(sinceTime) === undefined) {
    return badRequest(timeFailure(sinceTime, false));
  }
  const isBoth = sinceTime !== '' && query.has('sinceSeconds');
  const faults = [];
  for (const [parameter, least] of [
    ['tailLines', 0],
    ['limitBytes', 1],
    ['sinceSeconds', 1],
  ] as const) {
    const value = query.integer(parameter);
    if (!value.ok) return value.status;
    if (isBoth && parameter === 'sinceSeconds') continue;
    if (value.value === null || value.value >= least) continue;
    const why = least === 0 ? 'must be greater than or equal to 0' : 'must be greater than 0';
    faults.push(invalidValue(parameter, value.value, why));
  }
  const once = 'at most one of `sinceTime` or `sinceSeconds` may be specified';
  if (isBoth) faults.push(forbiddenField('[]', once));
  // its feature is off by default
  if (query.has('stream')) faults.push(forbiddenField('stream', 'may not be specified'));
  return faults.length === 0 ? null : invalid({ group: '', name: 'PodLogOptions' }, name, faults);
}

function readLog(context: SubresourceContext): void {
  const { call } = context;
  const { name, namespace } = call.info;
  const fault = logFault(context);
  if (fault !== null) {
    call.fail(fault);
    return;
  }
  const pod = podOf(context);
  if (pod === null) return;
  const container = containerOf(pod, name, call.query.text('container'));
  if (!container.ok) {
    call.fail(container.status);
    return;
  }
  const node = stringAt(pod, 'spec', 'nodeName');
  if (node === '') {
    call.send(204, null, null);
    return;
  }
  const query = new URLSearchParams();
  for (const parameter of LOG_PARAMETERS) {
    const text = call.query.text(parameter);
    if (['follow', 'previous', 'timestamps'].includes(parameter)) {
      if (call.query.flag(parameter)) query.set(parameter, 'true');
    } else if (text !== '') query.set(parameter, text);
  }
  const isInsecure = call.query.flag('insecureSkipTLSVerifyBackend');
  const path = `/containerLogs/${namespace}/${name}/${container.value}${queryOf(query)}`;
  toKubelet(context, node, path, { wrapsFailures: true, isInsecure });
}

function queryOf(query: URLSearchParams): string {
  return query.size === 0 ? '' : `?${query.toString()}`;
}

/** The container that is meant, by upstream's rules. */
function containerOf(pod: JsonObject, name: string, wanted: string): Result<string> {
  const named = (field: string): string[] =>
    listAt(pod, 'spec', field).map((one) => stringAt(one, 'name'));
  const containers = named('containers');
  const others = [...named('initContainers'), ...named('ephemeralContainers')];
  if (wanted !== '') {
    if ([...containers, ...others].includes(wanted)) return success(wanted);
    return failed(badRequest(`container ${wanted} is not valid for pod ${name}`));
  }
  const [only] = containers;
  if (containers.length === 1 && only !== undefined) return success(only);
  const text = `a container name must be specified for pod ${name}, choose one of:`;
  const inits = named('initContainers');
  const more = inits.length === 0 ? '' : ` or one of the init containers: [${inits.join(' ')}]`;
  return failed(badRequest(`${text} [${containers.join(' ')}]${more}`));
}

/**
 * A WebSocket begins as a GET, but what goes over it changes things: a user who may only read must
 * not get in that way (upstream's AuthorizePodWebsocketUpgradeCreatePermission). Calls `run`, in a
 * later turn where a webhook has to be asked first, or answers 403.
 */
function unlessReader(context: SubresourceContext, run: () => void): void {
  const { call, services, admission } = context;
  if (call.exchange.upgradeProtocol !== 'websocket' || call.info.verb === 'create') {
    run();
    return;
  }
  const attributes = attributesOf(call.info, 'create', call.info.name);
  let isLater = false;
  let isDecided = false;
  whenDecided(services.decide, call.identity, attributes, ({ allowed, reason }) => {
    isDecided = true;
    const finish = (): void => {
      if (allowed) run();
      else call.deny(denial(call.identity, attributes, reason));
    };
    if (isLater) admission.resume(call, finish);
    else finish();
  });
  isLater = true;
  if (!isDecided) call.keepBody();
}

/** exec and attach. */
function runIn(context: SubresourceContext): void {
  unlessReader(context, () => runAllowed(context));
}

function runAllowed(context: SubresourceContext): void {
  const { call } = context;
  const { name, namespace, subresource } = call.info;
  const pod = podOf(context);
  if (pod === null) return;
  const container = containerOf(pod, name, call.query.text('container'));
  const node = hostOf(pod, name);
  if (!container.ok || !node.ok) {
    if (!container.ok) call.fail(container.status);
    else if (!node.ok) call.fail(node.status);
    return;
  }
  const query = new URLSearchParams();
  // the kubelet's own names of these
  const streams = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' } as const;
  for (const [own, theirs] of Object.entries(streams)) {
    if (call.query.flag(own)) query.set(theirs, '1');
  }
  for (const word of call.query.all('command')) query.append('command', word);
  const path = `/${subresource}/${namespace}/${name}/${container.value}${queryOf(query)}`;
  toKubelet(context, node.value, path, { needsUpgrade: true });
}

function hostOf(pod: JsonObject, name: string): Result<string> {
  const node = stringAt(pod, 'spec', 'nodeName');
  if (node !== '') return success(node);
  return failed(badRequest(`pod ${name} does not have a host assigned`));
}

function forward(context: SubresourceContext): void {
  unlessReader(context, () => forwardAllowed(context));
}

function forwardAllowed(context: SubresourceContext): void {
  const { call } = context;
  const { name, namespace } = call.info;
  const pod = podOf(context);
  if (pod === null) return;
  const node = hostOf(pod, name);
  if (!node.ok) {
    call.fail(node.status);
    return;
  }
  const query = new URLSearchParams();
  const ports = call.query.all('ports');
  if (ports.length > 0) query.set('port', ports.join(','));
  const path = `/portForward/${namespace}/${name}${queryOf(query)}`;
  toKubelet(context, node.value, path, { needsUpgrade: true });
}

/** What a proxied name means; answers where it means nothing. */
function partsOf({ call }: SubresourceContext, what: string): SchemeNamePort | null {
  const parts = splitSchemeNamePort(call.info.name);
  const text = `invalid ${what} request ${JSON.stringify(call.info.name)}`;
  if (parts === null) call.fail(badRequest(text));
  return parts;
}

function proxyNode(context: SubresourceContext): void {
  const parts = partsOf(context, 'node');
  const relay = parts === null ? null : relayOf(context);
  if (parts === null || relay === null) return;
  const { call, world } = context;
  const kubelet = kubeletOf(world, parts.name, relay.kubelets, context.served.plural);
  const path = proxiedPath(call);
  if (kubelet.ok && parts.port !== '' && parts.port !== String(kubelet.value.port)) {
    toWorkload(context, relay, kubelet.value.host, parts, path);
  } else if (!sendsToSlash(call)) toKubelet(context, parts.name, path, { isWrapped: true });
}

/** Passes on to a port of a pod, of a service's pod, or of a node that is not its kubelet's. */
function toWorkload(
  { call }: SubresourceContext,
  relay: Relay,
  host: string,
  { scheme, port }: { readonly scheme: string; readonly port: string },
  path: string,
): void {
  if (!isReachable(host)) {
    call.fail(badRequest('address not allowed'));
    return;
  }
  if (sendsToSlash(call)) return;
  if (!/^[0-9]*$/.test(port)) {
    const why = `dial tcp: lookup tcp/${port}: unknown port`;
    call.fail(serviceUnavailable(`error trying to reach service: ${why}`));
    return;
  }
  relay.pass(call, {
    peer: 'workload',
    isTls: scheme === 'https',
    host,
    port: Number(port === '' ? (scheme === 'https' ? '443' : '80') : port),
    path,
    needsUpgrade: false,
    resource: `${call.info.resource}/${call.info.subresource}`,
    name: call.info.name,
    isWrapped: true,
    wrapsFailures: false,
    isInsecure: true,
  });
}

/** What is read without any path is looked for behind a slash. */
function sendsToSlash(call: Call): boolean {
  const { method, path, upgradeProtocol } = call.exchange;
  const [before = '', query] = path.split('?', 2);
  const isReading = method === 'GET' || method === 'HEAD';
  if (!isReading || upgradeProtocol !== undefined || !before.endsWith('/proxy')) return false;
  const location = `${before}/${query === undefined ? '' : `?${query}`}`;
  call.code = 301;
  call.exchange.respond(301, null, null, call.headers('location', location));
  return true;
}

/** Whether a host may be asked; what names lead to is looked up and judged by the relay. */
function isReachable(host: string): boolean {
  if (isIP(host) !== 0) return isProxyable(host);
  return !/^(?:.*\.)?localhost\.?$/i.test(host);
}

function proxyPod(context: SubresourceContext): void {
  const parts = partsOf(context, 'pod');
  const relay = parts === null ? null : relayOf(context);
  if (parts === null || relay === null) return;
  const { call, world, served } = context;
  if (!world.storage.get(keyOf(served, call.info.namespace, parts.name), row)) {
    call.fail(notFound(served.plural, parts.name));
    return;
  }
  const pod = decodeRow(served, row, row.modRevision);
  const host = stringAt(pod, 'status', 'podIP');
  const port = parts.port === '' ? firstPort(pod) : parts.port;
  toWorkload(context, relay, host === '' ? 'localhost' : host, { ...parts, port }, pathOf(context));
}

function pathOf({ call }: SubresourceContext): string {
  return proxiedPath(call);
}

function firstPort(pod: JsonObject): string {
  for (const container of listAt(pod, 'spec', 'containers')) {
    const port = (listAt(container, 'ports')[0] as JsonObject | undefined)?.['containerPort'];
    if (typeof port === 'number' && port > 0) return String(port);
  }
  return '';
}

function proxyService(context: SubresourceContext): void {
  const parts = partsOf(context, 'service');
  const relay = parts === null ? null : relayOf(context);
  if (parts === null || relay === null) return;
  const { call, world, served } = context;
  const { namespace } = call.info;
  if (!world.storage.get(keyOf(served, namespace, parts.name), row)) {
    call.fail(notFound(served.plural, parts.name));
    return;
  }
  const service = decodeRow(served, row, row.modRevision);
  const name = portName(service, parts.port);
  if (name === null) {
    const text = `no service port ${Number(parts.port)} found for service`;
    call.fail(serviceUnavailable(`${text} ${JSON.stringify(parts.name)}`));
    return;
  }
  const found = readyEnds(world, namespace, parts.name, name);
  // nobody has looked for its ends yet
  if (found === null) {
    call.fail(notFound(ENDPOINTS, parts.name));
    return;
  }
  const ends = found.filter((one) => isPodAt(world, namespace, one.pod, one.host));
  const end = ends[world.edge.below(Math.max(1, ends.length))];
  if (end === undefined) {
    const quoted = JSON.stringify(call.info.name);
    call.fail(serviceUnavailable(`no endpoints available for service ${quoted}`));
    return;
  }
  const { host, port } = end;
  toWorkload(context, relay, host, { scheme: parts.scheme, port: String(port) }, pathOf(context));
}

/** The name of the port that is meant: by name, or by a number that has to be there. */
function portName(service: JsonObject, wanted: string): string | null {
  const ports = listAt(service, 'spec', 'ports') as JsonObject[];
  if (!/^[+-]?\d+$/.test(wanted)) return wanted;
  const found = ports.find((port) => numberAt(port, 'port') === Number(wanted));
  return found === undefined ? null : stringAt(found, 'name');
}

interface End {
  readonly host: string;
  readonly port: number;
  /** The pod that is said to be there; '' where none is. */
  readonly pod: string;
}

/** Whoever may write endpoints sends this server to pods only, as upstream. */
function isPodAt(world: World, namespace: string, name: string, host: string): boolean {
  const pods = findServed('', 'v1', 'pods');
  if (pods === undefined || name === '') return false;
  if (!world.storage.get(keyOf(pods, namespace, name), row)) return false;
  const pod = decodeRow(pods, row, row.modRevision);
  return listAt(pod, 'status', 'podIPs').some((one) => stringAt(one, 'ip') === host);
}

/** Addresses that are ready for a port of a service, from its slices; null: it has none. */
function readyEnds(world: World, namespace: string, service: string, portOf: string): End[] | null {
  const served = findServed('discovery.k8s.io', 'v1', 'endpointslices');
  const found: End[] = [];
  if (served === undefined) return null;
  let isSliced = false;
  const { start, end } = rangeOf(served, namespace);
  world.storage.page(start, end, 0, (one) => {
    const slice = decodeRow(served, one, one.modRevision);
    const labels = objectAt(slice, 'metadata', 'labels');
    if (labels?.['kubernetes.io/service-name'] !== service) return true;
    isSliced = true;
    const port = listAt(slice, 'ports').find((item) => stringAt(item, 'name') === portOf);
    const number = (port as JsonObject | undefined)?.['port'];
    if (typeof number !== 'number') return true;
    for (const item of listAt(slice, 'endpoints')) {
      if (objectAt(item, 'conditions')?.['ready'] === false) continue;
      const host = listAt(item, 'addresses')[0];
      const target = objectAt(item, 'targetRef');
      const isOwn = stringAt(target, 'namespace') === namespace;
      const pod = isOwn ? stringAt(target, 'name') : '';
      if (typeof host === 'string') found.push({ host, port: number, pod });
    }
    return true;
  });
  return isSliced ? found : null;
}
