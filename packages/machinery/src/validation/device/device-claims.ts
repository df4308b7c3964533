/** What claims of devices ask for: requests, constraints, configuration. */
import { expressionFault } from '../../cel/expression-fault.ts';
import { compileCel } from '../../cel/program.ts';
import { DEVICE_ENVIRONMENT, SELECTOR_COST_MAX } from '../../cel/device-environment.ts';
import {
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors } from '../../meta/names.ts';
import {
  checkDnsLabel,
  eachObject,
  invalidEach,
  type Findings,
} from '../field/validation-rules.ts';
import { checkDriverName } from '../field/driver-name.ts';
import { checkBounded, checkRepeats, checkTexts, TEXT_OF } from './device-lists.ts';
import { checkDeviceToleration, checkFullPartName } from './device-names.ts';

/** Requests, results, constraints, configurations and selectors: as many at most. */
export const ENTRIES_MAX = 32;
const ALTERNATIVES_MAX = 8;
const EXPRESSION_LENGTH_MAX = 10 * 1024;
const PARAMETERS_LENGTH_MAX = 10 * 1024;

const NAME_OF = (item: JsonValue): string => stringAt(item, 'name');

/** Requests of a claim by name, each with its alternatives. */
export type RequestNames = ReadonlyMap<string, ReadonlySet<string>>;

export function requestNamesOf(devices: JsonObject | undefined): RequestNames {
  return new Map(
    listAt(devices, 'requests').map((request) => [
      NAME_OF(request),
      new Set(listAt(request, 'firstAvailable').map(NAME_OF)),
    ]),
  );
}

/** `devices` of a claim. */
export function checkDeviceClaim(found: Findings, path: string, claim: JsonObject): void {
  const names = requestNamesOf(claim);
  const requests = listAt(claim, 'requests');
  const at = `${path}.requests`;
  if (checkBounded(found, at, requests, ENTRIES_MAX, checkRequest.bind(null, found))) {
    checkRepeats(found, at, requests, NAME_OF);
  }
  const constraints = listAt(claim, 'constraints');
  checkBounded(found, `${path}.constraints`, constraints, ENTRIES_MAX, (constraint, each) => {
    checkRequestReferences(found, `${each}.requests`, listAt(constraint, 'requests'), names);
    const { matchAttribute, distinctAttribute } = constraint;
    if (typeof matchAttribute === 'string') {
      checkFullPartName(found, `${each}.matchAttribute`, matchAttribute);
    } else if (typeof distinctAttribute === 'string') {
      checkFullPartName(found, `${each}.distinctAttribute`, distinctAttribute);
    } else {
      const text =
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple ' +
        'fields are set';
      found.push(required(each, text));
    }
  });
  const configs = listAt(claim, 'config');
  checkBounded(found, `${path}.config`, configs, ENTRIES_MAX, (config, each) => {
    checkRequestReferences(found, `${each}.requests`, listAt(config, 'requests'), names);
    checkDeviceConfig(found, each, config, false);
  });
}

function checkRequest(found: Findings, request: JsonObject, path: string): void {
  checkDnsLabel(found, `${path}.name`, stringAt(request, 'name'));
  const exactly = objectAt(request, 'exactly');
  const alternatives = listAt(request, 'firstAvailable');
  const either = 'exactly one of `exactly` or `firstAvailable` is required';
  if (exactly === undefined && alternatives.length === 0) found.push(required(path, either));
  else if (exactly !== undefined && alternatives.length > 0) {
    found.push(invalidValue(path, null, `${either}, but multiple fields are set`));
  } else if (exactly !== undefined) checkWish(found, `${path}.exactly`, exactly);
  else {
    const at = `${path}.firstAvailable`;
    const isFine = checkBounded(found, at, alternatives, ALTERNATIVES_MAX, (one, each) => {
      checkDnsLabel(found, `${each}.name`, stringAt(one, 'name'));
      checkWish(found, each, one);
    });
    if (isFine) checkRepeats(found, at, alternatives, NAME_OF);
  }
}

/** One way to fulfil a request: a class, selectors, how many. */
function checkWish(found: Findings, path: string, wish: JsonObject): void {
  const className = stringAt(wish, 'deviceClassName');
  if (className === '') found.push(required(`${path}.deviceClassName`));
  else {
    invalidEach(found, `${path}.deviceClassName`, className, dnsSubdomainErrors(className));
  }
  checkSelectors(found, `${path}.selectors`, listAt(wish, 'selectors'));
  const mode = stringAt(wish, 'allocationMode');
  const count = numberAt(wish, 'count');
  const at = `${path}.count`;
  if (mode === 'All') {
    const text = "must not be specified when allocationMode is 'All'";
    if (count !== 0) found.push(invalidValue(at, count, text));
  } else if (mode === 'ExactCount') {
    if (count <= 0) found.push(invalidValue(at, count, 'must be greater than zero'));
  } else found.push(notSupported(`${path}.allocationMode`, mode, ['All', 'ExactCount']));
  eachObject(listAt(wish, 'tolerations'), `${path}.tolerations`, (toleration, each) => {
    checkDeviceToleration(found, each, toleration);
  });
}

/** Expressions that a device must fulfil. */
export function checkSelectors(
  found: Findings,
  path: string,
  selectors: readonly JsonValue[],
): void {
  checkBounded(found, path, selectors, ENTRIES_MAX, (selector, at) => {
    const cel = objectAt(selector, 'cel');
    if (cel === undefined) found.push(required(`${at}.cel`));
    else checkExpression(found, `${at}.cel.expression`, stringAt(cel, 'expression'));
  });
}

function checkExpression(found: Findings, path: string, source: string): void {
  if (Buffer.byteLength(source) > EXPRESSION_LENGTH_MAX) {
    found.push(tooLong(path, EXPRESSION_LENGTH_MAX));
    return;
  }
  const compiled = compileCel(DEVICE_ENVIRONMENT, source);
  if (!compiled.ok) {
    found.push(expressionFault(path, source, compiled));
    return;
  }
  const { type } = compiled.program;
  if (type.kind !== 'bool' && type.kind !== 'dyn') {
    const text = `must evaluate to bool or the unknown type, not ${type.name}`;
    found.push(invalidValue(path, source, text));
  } else if (compiled.program.estimate().max > SELECTOR_COST_MAX) {
    found.push(forbiddenField(path, 'too complex, exceeds cost limit'));
  }
}

/** Names of requests, or of alternatives in them (`request/alternative`), each once. */
export function checkRequestReferences(
  found: Findings,
  path: string,
  list: readonly JsonValue[],
  names: RequestNames,
): void {
  const isFine = checkTexts(found, path, list, ENTRIES_MAX, (name, at) => {
    checkRequestReference(found, at, name, names);
  });
  if (isFine) checkRepeats(found, path, list, TEXT_OF);
}

/** A name of a request, or of an alternative in it. */
export function checkRequestReference(
  found: Findings,
  path: string,
  name: string,
  names: RequestNames,
): void {
  const text =
    'must be the name of a request in the claim or the name of a request and a subrequest ' +
    "separated by '/'";
  const [request = '', alternative, ...others] = name.split('/');
  if (others.length > 0) {
    found.push(invalidValue(path, name, text));
    return;
  }
  checkDnsLabel(found, path, request);
  if (alternative !== undefined) checkDnsLabel(found, path, alternative);
  const alternatives = names.get(request);
  const isKnown =
    alternatives !== undefined && (alternative === undefined || alternatives.has(alternative));
  if (!isKnown) found.push(invalidValue(path, name, text));
}

/** Parameters for a driver; those that are stored may be of any length. */
export function checkDeviceConfig(
  found: Findings,
  path: string,
  config: JsonObject,
  isStored: boolean,
): void {
  const opaque = objectAt(config, 'opaque');
  if (opaque === undefined) {
    found.push(required(`${path}.opaque`));
    return;
  }
  checkDriverName(found, `${path}.opaque.driver`, stringAt(opaque, 'driver'));
  checkRaw(found, `${path}.opaque.parameters`, opaque['parameters'], isStored);
}

/** Any object, of the form that a driver knows. */
export function checkRaw(
  found: Findings,
  path: string,
  raw: JsonValue | undefined,
  isStored: boolean,
): void {
  if (raw === undefined || raw === null) found.push(required(path));
  else if (!isStored && Buffer.byteLength(JSON.stringify(raw)) > PARAMETERS_LENGTH_MAX) {
    found.push(tooLong(path, PARAMETERS_LENGTH_MAX));
  } else if (!isObject(raw)) {
    found.push(invalidValue(path, '<value omitted>', 'must be a valid JSON object'));
  }
}
