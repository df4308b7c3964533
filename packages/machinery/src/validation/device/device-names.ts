/** Names around devices: pools, attributes, requests, taints. */
import {
  invalidValue,
  notSupported,
  required,
  tooLong,
  typedText,
} from '../../meta/fielderrors.ts';
import { listAt, stringAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import {
  dnsSubdomainErrors,
  identifierErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '../../meta/names.ts';
import { invalidEach, type Findings } from '../field/validation-rules.ts';
import { checkDriverName } from '../field/driver-name.ts';
import { checkRepeats, checkTexts, TEXT_OF } from './device-lists.ts';

const POOL_LENGTH_MAX = 253;
const ID_LENGTH_MAX = 32;
const BINDING_CONDITIONS_MAX = 4;
const EFFECTS = ['NoExecute', 'NoSchedule', 'None'];

/** Subdomains with slashes between them. */
export function checkPoolName(found: Findings, path: string, name: string): void {
  if (name === '') {
    found.push(required(path));
    return;
  }
  if (name.length > POOL_LENGTH_MAX) found.push(tooLong(path, POOL_LENGTH_MAX));
  for (const part of name.split('/')) invalidEach(found, path, part, dnsSubdomainErrors(part));
}

function checkIdentifier(found: Findings, path: string, id: string): void {
  if (id.length > ID_LENGTH_MAX) found.push(tooLong(path, ID_LENGTH_MAX));
  invalidEach(found, path, id, identifierErrors(id));
}

/** Attributes and capacities, with or without a domain; more than one slash goes unjudged. */
export function checkPartName(found: Findings, path: string, name: string): void {
  const [first = '', second, ...others] = name.split('/');
  if (others.length > 0) return;
  if (second === undefined) {
    checkIdentifier(found, path, first);
    return;
  }
  if (first === '') found.push(invalidValue(path, '', 'the domain must not be empty'));
  else checkDriverName(found, path, first);
  if (second === '') found.push(invalidValue(path, '', 'the name must not be empty'));
  else checkIdentifier(found, path, second);
}

/** The same where the domain has to be there. */
export function checkFullPartName(found: Findings, path: string, name: string): void {
  checkPartName(found, path, name);
  if (name.includes('/')) return;
  const text = 'a fully qualified name must be a domain and a name separated by a slash';
  found.push(invalidValue(path, typedText(name), text));
}

/** Ids that hosts make: what Go's uuid package takes, and then only its usual form. */
export function checkUuid(found: Findings, path: string, id: string): void {
  const fault = uuidFault(id);
  if (fault !== '') {
    found.push(invalidValue(path, id, `error validating uid: ${fault}`));
  } else if (id.length !== 36 || id !== id.toLowerCase()) {
    const text =
      'uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with ' +
      'lowercase hexadecimal characters';
    found.push(invalidValue(path, id, text));
  }
}

function uuidFault(id: string): string {
  const length = Buffer.byteLength(id);
  if (![32, 36, 38, 45].includes(length)) return `invalid UUID length: ${length}`;
  const isUrn = id.length === 45;
  if (isUrn && id.slice(0, 9).toLowerCase() !== 'urn:uuid:') {
    return `invalid urn prefix: "${id.slice(0, 9)}"`;
  }
  if (id.length === 38 && !/^\{.*\}$/.test(id)) return 'invalid bracketed UUID format';
  const inner = isUrn ? id.slice(9) : id.length === 38 ? id.slice(1, -1) : id;
  const form =
    id.length === 32 ? /^[0-9a-f]{32}$/i : /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
  return form.test(inner) ? '' : 'invalid UUID format';
}

/** What keeps others from a device. */
export function checkDeviceTaint(found: Findings, path: string, taint: JsonObject): void {
  const key = stringAt(taint, 'key');
  invalidEach(found, `${path}.key`, key, qualifiedNameErrors(key));
  const value = stringAt(taint, 'value');
  invalidEach(found, `${path}.value`, value, labelValueErrors(value));
  const effect = stringAt(taint, 'effect');
  if (effect === '') found.push(required(`${path}.effect`));
  else checkEffect(found, `${path}.effect`, effect);
}

function checkEffect(found: Findings, path: string, effect: string): void {
  if (!EFFECTS.includes(effect)) found.push(notSupported(path, effect, EFFECTS));
}

/** Who may have a device all the same. */
export function checkDeviceToleration(found: Findings, path: string, one: JsonObject): void {
  const key = stringAt(one, 'key');
  if (key !== '') invalidEach(found, `${path}.key`, key, qualifiedNameErrors(key));
  const operator = stringAt(one, 'operator');
  const value = stringAt(one, 'value');
  if (operator === 'Exists') {
    if (value !== '') {
      found.push(invalidValue(`${path}.value`, value, 'must be empty for operator `Exists`'));
    }
  } else if (operator === 'Equal') {
    invalidEach(found, `${path}.value`, value, labelValueErrors(value));
  } else if (operator === '') found.push(required(`${path}.operator`));
  else found.push(notSupported(`${path}.operator`, operator, ['Equal', 'Exists']));
  const effect = stringAt(one, 'effect');
  if (effect !== '') checkEffect(found, `${path}.effect`, effect);
}

/** Conditions of which all must hold, or none, before a device is bound. */
export function checkBindingConditions(found: Findings, path: string, owner: JsonObject): void {
  const wanted = listAt(owner, 'bindingConditions');
  const failures = listAt(owner, 'bindingFailureConditions');
  const wantedPath = `${path}.bindingConditions`;
  const failurePath = `${path}.bindingFailureConditions`;
  const checkKey = (text: string, at: string): void => {
    invalidEach(found, at, text, qualifiedNameErrors(text));
  };
  checkTexts(found, wantedPath, wanted, BINDING_CONDITIONS_MAX, checkKey);
  checkTexts(found, failurePath, failures, BINDING_CONDITIONS_MAX, checkKey);
  checkRepeats(found, wantedPath, wanted, TEXT_OF);
  for (const [index, failure] of failures.entries()) {
    const repeated: Findings = [];
    checkRepeats(repeated, failurePath, failures.slice(0, index + 1), TEXT_OF);
    found.push(...repeated.filter(({ field }) => field === `${failurePath}[${index}]`));
    if (!wanted.includes(failure)) continue;
    const text = 'bindingFailureConditions must not overlap with bindingConditions';
    found.push(invalidValue(`${failurePath}[${index}]`, failure, text));
  }
  if (wanted.length === 0 && failures.length > 0) {
    const text = 'bindingConditions are required to use bindingFailureConditions';
    found.push(invalidValue(wantedPath, owner['bindingConditions'], text));
  }
  if (failures.length === 0 && wanted.length > 0) {
    const text = 'bindingFailureConditions are required to use bindingConditions';
    found.push(invalidValue(failurePath, owner['bindingFailureConditions'], text));
  }
}
