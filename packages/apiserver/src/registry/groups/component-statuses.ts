/**
 * `componentstatuses`: not stored, but asked for at each request, as upstream does it: the storage,
 * and the two other programs of a control plane at their usual ports of this machine.
 */
import {
  matchesFields,
  parseFieldSelector,
  EVERY_FIELD,
} from '@megaplane/machinery/fieldselectors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  parseIncludeObject,
  partialObjectMetadata,
  printerOf,
  tableOf,
} from '@megaplane/machinery/printing';
import { EVERYTHING, matchesLabels, parseLabelSelector } from '@megaplane/machinery/selectors';
import { badRequest, notFound } from '@megaplane/machinery/status';
import type { Call } from '../../request/call.ts';
import type { ListOptions } from '../../request/options/list-options.ts';
import { checkTransformShape } from '../../request/negotiation.ts';
import type { Served } from '../../storage/served.ts';
import type { World } from '../../lister/world.ts';
import type { HealthProbe } from '../../webhook/health-probe.ts';

const KIND = 'ComponentStatus';
const PLURAL = 'componentstatuses';
const STORAGE = 'etcd-0';
/** Ports at which the others say how they are. */
const PROGRAMS: ReadonlyMap<string, number> = new Map([
  ['controller-manager', 10257],
  ['scheduler', 10259],
]);

/** True for the kind that this file answers for. */
export function isComponentStatus({ resource, custom }: Served): boolean {
  return custom === null && resource.group === '' && resource.resource === PLURAL;
}

/** Answers GET of one. */
export function getComponentStatus(world: World, probe: HealthProbe | null, call: Call): void {
  const { name } = call.info;
  if (name !== STORAGE && !PROGRAMS.has(name)) {
    call.fail(notFound({ group: '', name: 'componentstatus' }, name));
    return;
  }
  judge(world, probe, name, (status) => {
    if (!call.exchange.closed) sendOne(call, { kind: KIND, apiVersion: 'v1', ...status });
  });
}

/** Answers LIST. */
export function listComponentStatuses(
  world: World,
  probe: HealthProbe | null,
  call: Call,
  options: ListOptions,
): void {
  const labels = options.labelSelector;
  const byLabels = labels === '' ? { value: EVERYTHING } : parseLabelSelector(labels);
  const fields = options.fieldSelector;
  const byFields = fields === '' ? { value: EVERY_FIELD } : parseFieldSelector(fields, '', KIND);
  if ('error' in byLabels || 'error' in byFields) {
    const text = 'error' in byLabels ? byLabels.error : 'error' in byFields ? byFields.error : '';
    call.fail(badRequest(text));
    return;
  }
  const names = [...PROGRAMS.keys(), STORAGE].toSorted();
  const found = new Map<string, JsonObject>();
  for (const name of names) {
    judge(world, probe, name, (status) => {
      found.set(name, status);
      if (found.size < names.length || call.exchange.closed) return;
      const all = names.map((one) => found.get(one) ?? {});
      const isWanted = (one: JsonObject): boolean =>
        matchesLabels(byLabels.value, undefined) && matchesFields(byFields.value, one);
      sendList(call, all.filter(isWanted));
    });
  }
}

/** How one of them is; its words are those of upstream's prober. */
function judge(
  world: World,
  probe: HealthProbe | null,
  name: string,
  then: (status: JsonObject) => void,
): void {
  const tell = (isWell: boolean, message: string): void => {
    const condition = { type: 'Healthy', status: isWell ? 'True' : 'False', message };
    then({ metadata: { name }, conditions: [condition] });
  };
  const port = PROGRAMS.get(name);
  if (port === undefined) {
    const { fault } = world.storage;
    tell(fault === null, fault ?? 'ok');
  } else if (probe === null) tell(false, 'there is no way to ask it');
  else probe(port, tell);
}

function sendOne(call: Call, object: JsonObject): void {
  const { transform } = call.media;
  const shape = checkTransformShape(call.media, false, `*core.${KIND}`);
  if (!shape.ok) call.fail(shape.status);
  else if (transform === 'table') sendTable(call, [object]);
  else if (transform === 'metadata')
    call.sendObject(200, partialObjectMetadata(object, metaVersion(call)));
  else call.sendObject(200, object);
}

function sendList(call: Call, items: JsonObject[]): void {
  const { transform } = call.media;
  const shape = checkTransformShape(call.media, true, `*core.${KIND}List`);
  if (!shape.ok) {
    call.fail(shape.status);
    return;
  }
  const whole = items.map((item) => ({ kind: KIND, apiVersion: 'v1', ...item }));
  if (transform === 'table') sendTable(call, whole);
  else if (transform === 'metadataList') {
    const version = metaVersion(call);
    const list = { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${version}` };
    const shown = whole.map((one) => partialObjectMetadata(one, version));
    call.sendObject(200, { ...list, metadata: {}, items: shown });
  } else call.sendObject(200, { kind: `${KIND}List`, apiVersion: 'v1', metadata: {}, items });
}

function sendTable(call: Call, objects: readonly JsonObject[]): void {
  const include = parseIncludeObject(call.query.text('includeObject'));
  if (!include.ok) {
    call.fail(include.status);
    return;
  }
  const frame = { include: include.value, nowMs: call.nowMs, metadata: {}, hasColumns: true };
  const table = tableOf(printerOf('', KIND), objects, { ...frame, version: metaVersion(call) });
  call.sendObject(200, table);
}

function metaVersion({ media }: Call): 'v1' | 'v1beta1' {
  return media.version === 'v1' ? 'v1' : 'v1beta1';
}
