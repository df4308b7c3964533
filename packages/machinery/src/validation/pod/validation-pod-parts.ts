/** Changes of pods by way of `resize` and `ephemeralcontainers`. */

import { forbiddenField, invalidValue, type FieldError } from '../../meta/fielderrors.ts';
import { goDiff } from '../../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { qosClassOf } from '../../meta/pod-resources.ts';
import { MIRROR } from './validation-pod-annotations.ts';
import { eachObject, isSame, type Findings } from '../field/validation-rules.ts';

const RESIZED = ['cpu', 'memory'];
const SIDES = ['requests', 'limits'] as const;
const ONLY_RESIZED = 'only cpu and memory resources are mutable';

/** What some pods refuse altogether names no field: an empty path is printed like this. */
export const NO_FIELD = '[]';

function isMirror(pod: JsonObject): boolean {
  return Object.hasOwn(objectAt(pod, 'metadata', 'annotations') ?? {}, MIRROR);
}

/** Containers that look into a running pod are added, and then stay as they are. */
export function changeEphemeral(found: Findings, next: JsonObject, previous: JsonObject): void {
  if (isMirror(previous)) {
    onlyThis(found, forbiddenField(NO_FIELD, 'static pods do not support ephemeral containers'));
    return;
  }
  const path = 'spec.ephemeralContainers';
  const after = listAt(next, 'spec', 'ephemeralContainers');
  for (const old of listAt(previous, 'spec', 'ephemeralContainers')) {
    const name = stringAt(old, 'name');
    const same = after.findLast((container) => stringAt(container, 'name') === name);
    if (same === undefined) {
      const text = `existing ephemeral containers "${name}" may not be removed\n`;
      found.push(forbiddenField(path, text));
    } else if (!isSame(same, old)) {
      const text = `existing ephemeral containers "${name}" may not be changed\n`;
      found.push(forbiddenField(path, text + goDiff('core.v1.EphemeralContainer', old, same)));
    }
  }
}

/** A refusal of the whole pod stands alone. */
function onlyThis(found: Findings, error: FieldError): void {
  found.splice(0, found.length, error);
}

/** Amounts of cpu and memory change, are not taken away, and leave the pod in its class. */
export function changeSize(found: Findings, next: JsonObject, previous: JsonObject): void {
  if (isMirror(previous)) {
    onlyThis(found, forbiddenField(NO_FIELD, 'static pods cannot be resized'));
    return;
  }
  const stored = objectAt(previous, 'spec') ?? {};
  const spec = objectAt(next, 'spec') ?? {};
  if (stringAt(stored, 'os', 'name') === 'windows') {
    onlyThis(found, forbiddenField(NO_FIELD, 'windows pods cannot be resized'));
    return;
  }
  const qosClass = stringAt(previous, 'status', 'qosClass') || qosClassOf(previous);
  if (qosClass !== qosClassOf(next)) {
    const text = 'Pod QOS Class may not change as a result of resizing';
    found.push(invalidValue('spec', stringAt(next, 'status', 'qosClass'), text));
  }
  if (!resizesInPlace(previous)) {
    found.push(forbiddenField('spec', 'Pod running on node without support for resize'));
  }
  checkWholeSize(found, spec, stored);
  if (!checkOrder(found, spec, stored)) return;
  checkSizes(found, spec, stored);
  if (found.length > 0) return;
  if (!isSame(withOldSizes(spec, stored), stored)) {
    found.push(forbiddenField('spec', ONLY_RESIZED));
  }
}

/** A kubelet that can resize reports the resources of the containers that run. */
function resizesInPlace(pod: JsonObject): boolean {
  const running = listAt(pod, 'status', 'containerStatuses').find(
    (status) => objectAt(status, 'state', 'running') !== undefined,
  );
  return running === undefined || objectAt(running, 'resources') !== undefined;
}

function isSized(spec: JsonObject): boolean {
  return SIDES.some((side) => Object.keys(objectAt(spec, 'resources', side) ?? {}).length > 0);
}

/** What is said of the pod as a whole. */
function checkWholeSize(found: Findings, spec: JsonObject, stored: JsonObject): void {
  if (!isSized(spec) && !isSized(stored)) return;
  const [before, after] = [objectAt(stored, 'resources'), objectAt(spec, 'resources')];
  if (before !== undefined && after === undefined) {
    found.push(forbiddenField('spec.resources', 'pod-level resources cannot be removed'));
    return;
  }
  checkRemoved(found, 'spec.resources', after, before, 'pod-level resource');
  if (isSame(withOldWhole(after, before), before)) return;
  found.push(forbiddenField('spec', `${ONLY_RESIZED} at pod-level`));
}

function checkRemoved(
  found: Findings,
  path: string,
  after: JsonObject | undefined,
  before: JsonObject | undefined,
  what: string,
): void {
  for (const side of SIDES) {
    const kept = objectAt(after, side) ?? {};
    if (Object.keys(objectAt(before, side) ?? {}).every((name) => Object.hasOwn(kept, name)))
      continue;
    found.push(forbiddenField(`${path}.${side}`, `${what} ${side} cannot be removed`));
  }
}

/** False where containers are not those that were there. */
function checkOrder(found: Findings, spec: JsonObject, stored: JsonObject): boolean {
  const faults = found.length;
  for (const field of ['containers', 'initContainers']) {
    const [before, after] = [listAt(stored, field), listAt(spec, field)];
    if (before.length !== after.length) {
      const text = `${field} may not be added or removed on resize`;
      found.push(forbiddenField(`spec.${field}`, text));
      continue;
    }
    eachObject(before, `spec.${field}`, (old, at, index) => {
      if (stringAt(after[index], 'name') === stringAt(old, 'name')) return;
      const text = `${field} may not be renamed or reordered on resize`;
      found.push(forbiddenField(`${at}.name`, text));
    });
  }
  return found.length === faults;
}

function checkSizes(found: Findings, spec: JsonObject, stored: JsonObject): void {
  for (const field of ['initContainers', 'containers']) {
    const after = listAt(spec, field);
    eachObject(listAt(stored, field), `spec.${field}`, (old, at, index) => {
      const [own, stored] = [after[index], old].map((one) => objectAt(one, 'resources'));
      checkRemoved(found, `${at}.resources`, own, stored, 'resource');
    });
  }
  for (const field of ['containers', 'initContainers']) {
    const before = listAt(stored, field);
    eachObject(listAt(spec, field), `spec.${field}`, (container, at, index) => {
      const old = before[index];
      if (!isSame(withOldSize(container, old), old)) {
        const isRegular = field === 'containers';
        const text = 'only cpu and memory resources for init or sidecar containers are mutable';
        found.push(forbiddenField(isRegular ? 'spec' : at, isRegular ? ONLY_RESIZED : text));
      }
      if (field === 'initContainers') checkRestarts(found, at, container, old);
    });
  }
}

/** What runs to its end cannot be started again to change its size. */
function checkRestarts(
  found: Findings,
  path: string,
  container: JsonObject,
  old: JsonValue | undefined,
): void {
  if (stringAt(container, 'restartPolicy') === 'Always' || isSame(container, old)) return;
  for (const policy of listAt(container, 'resizePolicy')) {
    if (stringAt(policy, 'restartPolicy') !== 'RestartContainer') continue;
    const text =
      'non-sidecar init containers with a resize policy of RestartContainer cannot be resized';
    found.push(forbiddenField(path, text));
  }
}

function withOldSizes(spec: JsonObject, stored: JsonObject): JsonObject {
  const sized: JsonObject = { ...spec };
  for (const field of ['containers', 'initContainers']) {
    const before = listAt(stored, field);
    sized[field] = listAt(spec, field).map((one, index) => withOldSize(one, before[index]));
  }
  if (isSized(spec) || isSized(stored)) {
    const [after, before] = [objectAt(spec, 'resources'), objectAt(stored, 'resources')];
    sized['resources'] = withOldWhole(after, before) ?? null;
  }
  return sized;
}

/** The container as it was but for other amounts; claims of devices are not looked at. */
function withOldSize(container: JsonValue, old: JsonValue | undefined): JsonValue {
  if (!isObject(container)) return container;
  const amounts = withOldAmounts(objectAt(container, 'resources'), objectAt(old, 'resources'));
  const { claims: _, ...resources } = amounts;
  return { ...container, resources };
}

/** Nothing where nothing was said of the pod as a whole, and no more is said than may change. */
function withOldWhole(
  after: JsonObject | undefined,
  before: JsonObject | undefined,
): JsonObject | undefined {
  const amounts = withOldAmounts(after, before);
  return before === undefined && Object.keys(amounts).length === 0 ? undefined : amounts;
}

function withOldAmounts(after: JsonObject | undefined, before: JsonObject | undefined): JsonObject {
  const amounts: JsonObject = { ...after };
  for (const side of SIDES) {
    const own: JsonObject = { ...objectAt(after, side) };
    const old = objectAt(before, side) ?? {};
    for (const name of RESIZED) {
      const value = old[name];
      if (value === undefined) delete own[name];
      else own[name] = value;
    }
    if (Object.keys(own).length > 0) amounts[side] = own;
    else delete amounts[side];
  }
  return amounts;
}
