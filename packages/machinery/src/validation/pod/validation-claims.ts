/** Claims of volumes: their spec, on their own and in templates. */
import {
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
} from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors, qualifiedNameErrors } from '../../meta/names.ts';
import { parseQuantity, Quantity } from '../../meta/quantity.ts';
import {
  checkDnsLabel,
  checkSelector,
  invalidEach,
  isSame,
  oneOfSet,
  type Findings,
} from '../field/validation-rules.ts';

/** Ways in which nodes may use a volume. */
export const ACCESS_MODES: readonly string[] = [
  'ReadOnlyMany',
  'ReadWriteMany',
  'ReadWriteOnce',
  'ReadWriteOncePod',
];

/** The spec of a claim, or of a template of claims, at `path`. */
export function checkClaimSpec(found: Findings, path: string, spec: JsonObject): void {
  const modes = listAt(spec, 'accessModes');
  const modesPath = `${path}.accessModes`;
  if (modes.length === 0) found.push(required(modesPath, 'at least 1 access mode is required'));
  checkSelector(found, `${path}.selector`, objectAt(spec, 'selector'));
  for (const mode of modes) {
    if (typeof mode === 'string' && ACCESS_MODES.includes(mode)) continue;
    found.push(notSupported(modesPath, mode, ACCESS_MODES));
  }
  if (modes.includes('ReadWriteOncePod') && modes.length > 1) {
    const text = 'may not use ReadWriteOncePod with other access modes';
    found.push(forbiddenField(modesPath, text));
  }
  checkStorage(
    found,
    `${path}.resources[storage]`,
    stringAt(spec, 'resources', 'requests', 'storage'),
  );
  const className = stringAt(spec, 'storageClassName');
  if (className !== '') {
    invalidEach(found, `${path}.storageClassName`, className, dnsSubdomainErrors(className));
  }
  oneOfSet(found, `${path}.volumeMode`, spec['volumeMode'], ['Block', 'Filesystem']);
  for (const field of ['dataSource', 'dataSourceRef']) {
    const source = objectAt(spec, field);
    if (source !== undefined) checkDataSource(found, `${path}.${field}`, source);
  }
  checkSources(found, path, spec);
  const attributes = stringAt(spec, 'volumeAttributesClassName');
  if (attributes === '') return;
  const at = `${path}.volumeAttributesClassName`;
  invalidEach(found, at, attributes, dnsSubdomainErrors(attributes));
}

function checkDataSource(found: Findings, path: string, source: JsonObject): void {
  for (const field of ['name', 'kind']) {
    if (stringAt(source, field) === '') found.push(required(`${path}.${field}`));
  }
  const group = stringAt(source, 'apiGroup');
  const kind = stringAt(source, 'kind');
  if (group === '' && kind !== 'PersistentVolumeClaim') {
    const text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    found.push(invalidValue(path, kind, text));
  }
  if (group !== '') invalidEach(found, `${path}.apiGroup`, group, dnsSubdomainErrors(group));
  const namespace = stringAt(source, 'namespace');
  if (namespace !== '') checkDnsLabel(found, `${path}.namespace`, namespace);
}

function checkStorage(found: Findings, path: string, text: string): void {
  if (text === '') {
    found.push(required(path));
    return;
  }
  const amount = parseQuantity(text);
  if (amount instanceof Quantity && amount.sign > 0) return;
  found.push(invalidValue(path, text, 'must be greater than zero'));
}

/** The two ways to name a source say the same, and another namespace's is named in one way only. */
function checkSources(found: Findings, path: string, spec: JsonObject): void {
  const [source, reference] = [objectAt(spec, 'dataSource'), objectAt(spec, 'dataSourceRef')];
  if (source === undefined || reference === undefined) return;
  // upstream prints the fields of a path here, and a path shows none
  const value = printed('{}');
  if (stringAt(reference, 'namespace') !== '') {
    const text = 'may not be specified when dataSourceRef.namespace is specified';
    found.push(invalidValue(path, value, text));
    return;
  }
  const { namespace: _, ...named } = reference;
  if (!isSame(source, named)) found.push(invalidValue(path, value, 'must match dataSourceRef'));
}

const RESIZE_STATUSES = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
  'NodeResizePending',
];

/** What is there of a claim's volume, and how far its growth has come. */
export function checkClaimStatus(found: Findings, claim: JsonObject): void {
  const status = objectAt(claim, 'status') ?? {};
  if (listAt(claim, 'spec', 'accessModes').length === 0) found.push(required('Spec.accessModes'));
  for (const [name, amount] of Object.entries(objectAt(status, 'capacity') ?? {})) {
    checkCapacity(found, `status.capacity[${name}]`, amount);
  }
  const resizes = 'status.allocatedResourceStatuses';
  for (const [name, value] of Object.entries(objectAt(status, 'allocatedResourceStatuses') ?? {})) {
    checkResourceName(found, resizes, name);
    const isKnown = typeof value === 'string' && RESIZE_STATUSES.includes(value);
    if (!isKnown) found.push(notSupported(resizes, name, RESIZE_STATUSES));
  }
  const path = 'status.allocatedResources';
  for (const [name, amount] of Object.entries(objectAt(status, 'allocatedResources') ?? {})) {
    if (!checkResourceName(found, path, name)) continue;
    checkCapacity(found, `${path}[${name}]`, amount);
  }
}

function checkCapacity(found: Findings, path: string, amount: JsonValue | undefined): void {
  const quantity = parseQuantity(typeof amount === 'string' ? amount : '');
  if (!(quantity instanceof Quantity) || quantity.sign >= 0) return;
  const value = printed(String(quantity.scaled(0)));
  found.push(invalidValue(path, value, 'must be a valid resource quantity'));
}

/** Of what has no domain of its own, volumes have storage alone. */
function checkResourceName(found: Findings, path: string, name: string): boolean {
  const faults = qualifiedNameErrors(name);
  invalidEach(found, path, name, faults);
  if (faults.length > 0) return false;
  const isNative = !name.includes('/') || name.includes('kubernetes.io/');
  if (!isNative || name === 'storage') return true;
  found.push(notSupported(path, name, ['storage']));
  return false;
}
