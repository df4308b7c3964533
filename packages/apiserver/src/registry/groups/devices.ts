/** Kinds of `resource.k8s.io`: who may administer devices, and what is not kept. */
import { forbiddenField, type FieldError } from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { invalid, type Status } from '@megaplane/machinery/status';
import { formatTime } from '@megaplane/machinery/times';
import { defineBehaviour, type RuleContext } from '../rest/behaviour.ts';
import { changeFaults, faultyKind, newFaults } from '../rest/schema-gate.ts';
import type { World } from '../../lister/world.ts';
import { offersOf } from '../../storage/device-conversion.ts';
import { readNamespace } from '../../lister/stored-namespaces.ts';

const ADMIN_LABEL = 'resource.kubernetes.io/admin-access';
/** Attributes with lists are off by default (DRAListTypeAttributes). */
const LISTS = ['ints', 'bools', 'strings', 'versions'];

/** Registers them. */
export function defineDevices(): void {
  defineBehaviour('resourceclaims.resource.k8s.io', {
    preflight: (claim, previous, context) =>
      previous === null ? adminRefusal(claim, objectAt(claim, 'spec'), context) : null,
    prepareStatus: dropReports,
    preflightStatus: grantRefusal,
  });
  defineBehaviour('resourceclaimtemplates.resource.k8s.io', {
    preflight: (template, previous, context) =>
      previous === null
        ? adminRefusal(template, objectAt(template, 'spec', 'spec'), context)
        : null,
  });
  defineBehaviour('devicetaintrules.resource.k8s.io', {
    prepareCreate: (rule, context) => stampTaint(rule, null, context),
    prepareUpdate: stampTaint,
  });
  defineBehaviour('resourceslices.resource.k8s.io', {
    prepareCreate: (slice, context) => prepareSlice(slice, null, context),
    prepareUpdate: prepareSlice,
    counting: 'early',
  });
}

/** Devices are administered from namespaces with a label; what else is wrong is told too. */
function adminRefusal(
  object: JsonObject,
  spec: JsonObject | undefined,
  { world, served }: RuleContext,
): Status | null {
  const requests = listAt(spec, 'devices', 'requests');
  const index = requests.findIndex(
    // in v1beta1 the request says it itself
    (request) => (objectAt(request, 'exactly') ?? objectAt(request))?.['adminAccess'] === true,
  );
  if (index < 0) return null;
  if (isAdmin(object, world)) return null;
  const fault = forbiddenField(`spec.devices.requests[${index}].adminAccess`, ADMIN_TEXT);
  const faults: FieldError[] = [fault, ...newFaults(served, object, () => {})];
  return invalid(faultyKind(served, object), stringAt(object, 'metadata', 'name'), faults);
}

const ADMIN_TEXT =
  `admin access to devices requires the \`${ADMIN_LABEL}: true\` label on the containing ` +
  'namespace';

function isAdmin(object: JsonObject, world: World): boolean {
  const namespace = readNamespace(world, stringAt(object, 'metadata', 'namespace')) ?? {};
  return stringAt(namespace, 'metadata', 'labels', ADMIN_LABEL) === 'true';
}

/** The same for what was given, unless it was before. */
function grantRefusal(
  next: JsonObject,
  previous: JsonObject,
  { world, served }: RuleContext,
): Status | null {
  const granted = (claim: JsonObject): number =>
    listAt(claim, 'status', 'allocation', 'devices', 'results').findIndex(
      (result) => objectAt(result)?.['adminAccess'] === true,
    );
  const index = granted(next);
  if (index < 0 || granted(previous) >= 0 || isAdmin(next, world)) return null;
  const path = `status.allocation.devices.results[${index}].adminAccess`;
  const others = changeFaults(served, next, previous, 'status', () => {});
  const faults = [forbiddenField(path, ADMIN_TEXT), ...others];
  return invalid(faultyKind(served, next), stringAt(next, 'metadata', 'name'), faults);
}

function deviceKey(device: JsonValue): string {
  const parts = ['driver', 'pool', 'device', 'shareID'].map((field) => stringAt(device, field));
  return JSON.stringify(parts);
}

/** What drivers said of a device goes with its allocation. */
function dropReports(next: JsonObject, previous: JsonObject): void {
  const resultsOf = (claim: JsonObject): Set<string> =>
    new Set(listAt(claim, 'status', 'allocation', 'devices', 'results').map(deviceKey));
  const kept = resultsOf(next);
  const gone = resultsOf(previous);
  for (const key of kept) gone.delete(key);
  const status = objectAt(next, 'status');
  if (status === undefined || status['devices'] === undefined) return;
  const devices = listAt(status, 'devices').filter((device) => !gone.has(deviceKey(device)));
  const { devices: _, ...rest } = status;
  next['status'] = devices.length === 0 ? rest : { ...rest, devices };
}

/** Drops what gates keep out unless it was there before, and stamps taints. */
function prepareSlice(
  slice: JsonObject,
  previous: JsonObject | null,
  { world }: RuleContext,
): void {
  const devices = offersOf(slice);
  const before = previous === null ? [] : offersOf(previous);
  if (!before.some(hasLists)) for (const device of devices) dropLists(device);
  if (!before.some((device) => objectAt(device, MAPPINGS) !== undefined)) {
    for (const device of devices) delete device[MAPPINGS];
  }
  const timeAdded = formatTime(Math.floor(world.edge.nowMs() / 1000));
  for (const device of devices) {
    for (const taint of listAt(device, 'taints').filter(isObject)) taint['timeAdded'] ??= timeAdded;
  }
}

/** A taint says since when it has its effect; who changes the effect alone begins anew. */
function stampTaint(rule: JsonObject, previous: JsonObject | null, { world }: RuleContext): void {
  const taint = objectAt(rule, 'spec', 'taint');
  if (taint === undefined) return;
  const before = objectAt(previous ?? {}, 'spec', 'taint');
  const isOld =
    before !== undefined &&
    before['effect'] !== taint['effect'] &&
    before['timeAdded'] === taint['timeAdded'];
  if (taint['timeAdded'] !== undefined && !isOld) return;
  taint['timeAdded'] = formatTime(Math.floor(world.edge.nowMs() / 1000));
}

const MAPPINGS = 'nodeAllocatableResourceMappings';

function attributesOf(device: JsonObject): JsonObject[] {
  return Object.values(objectAt(device, 'attributes') ?? {}).filter(isObject);
}

function hasLists(device: JsonObject): boolean {
  return attributesOf(device).some((one) => LISTS.some((list) => one[list] !== undefined));
}

function dropLists(device: JsonObject): void {
  for (const attribute of attributesOf(device)) {
    for (const list of LISTS) delete attribute[list];
  }
}
