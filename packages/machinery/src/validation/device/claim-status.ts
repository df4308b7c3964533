/** What was given to a claim of devices, and to whom. */
import { duplicate, forbiddenField, invalidValue, notSupported } from '../../meta/fielderrors.ts';
import { printed, required, tooLong, tooMany } from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { parseNetwork, ipText } from '../../meta/ip-address.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { checkNodeSelector } from '../pod/validation-affinity.ts';
import { checkConditions } from '../field/validation-conditions.ts';
import { checkDnsLabel, IMMUTABLE, isSame, type Findings } from '../field/validation-rules.ts';
import { checkDriverName } from '../field/driver-name.ts';
import {
  checkDeviceConfig,
  checkRaw,
  checkRequestReference,
  checkRequestReferences,
  ENTRIES_MAX,
  requestNamesOf,
  type RequestNames,
} from './device-claims.ts';
import { checkBounded, checkRepeats, checkTexts, TEXT_OF } from './device-lists.ts';
import { checkBindingConditions, checkPoolName, checkUuid } from './device-names.ts';

const CONSUMERS_MAX = 256;
const CONDITIONS_MAX = 8;
const ADDRESSES_MAX = 16;
const INTERFACE_LENGTH_MAX = 256;
const HARDWARE_ADDRESS_LENGTH_MAX = 128;

/** A change of a claim's status. */
export function checkClaimStatus(found: Findings, claim: JsonObject, previous: JsonObject): void {
  const status = objectAt(claim, 'status') ?? {};
  const consumers = listAt(status, 'reservedFor');
  const path = 'status.reservedFor';
  const isFine = checkBounded(found, path, consumers, CONSUMERS_MAX, (consumer, at) => {
    for (const field of ['resource', 'name', 'uid']) {
      if (stringAt(consumer, field) === '') found.push(required(`${at}.${field}`));
    }
  });
  if (isFine) checkRepeats(found, path, consumers, (consumer) => stringAt(consumer, 'uid'));
  const allocation = objectAt(status, 'allocation');
  checkReports(found, listAt(status, 'devices'), allocation);
  if (consumers.length > 0) checkReservations(found, claim, previous);
  if (allocation === undefined) return;
  const before = objectAt(previous, 'status', 'allocation');
  if (before === undefined) {
    const names = requestNamesOf(objectAt(claim, 'spec', 'devices'));
    checkAllocation(found, 'status.allocation', allocation, names);
  } else if (!isSame(allocation, before)) {
    const value = goForm('resource.v1.AllocationResult', allocation);
    found.push(invalidValue('status.allocation', value, IMMUTABLE));
  }
}

function checkReservations(found: Findings, claim: JsonObject, previous: JsonObject): void {
  const path = 'status.reservedFor';
  if (objectAt(claim, 'status', 'allocation') === undefined) {
    found.push(forbiddenField(path, 'may not be specified when `allocated` is not set'));
    return;
  }
  if (stringAt(claim, 'metadata', 'deletionTimestamp') === '') return;
  const before = listAt(previous, 'status', 'reservedFor');
  const isNew = (one: JsonValue): boolean => !before.some((other) => isSame(one, other));
  if (!listAt(claim, 'status', 'reservedFor').some(isNew)) return;
  const text =
    'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set';
  found.push(forbiddenField(path, text));
}

/** `driver/pool/device`, and the share where a device has several users. */
function deviceKey(device: JsonValue): string {
  const parts = ['driver', 'pool', 'device', 'shareID'].map((field) => stringAt(device, field));
  return JSON.stringify(parts);
}

/** A device as upstream prints it in findings. */
function deviceForm(device: JsonValue): ReturnType<typeof printed> {
  const form = {
    Driver: stringAt(device, 'driver'),
    Pool: stringAt(device, 'pool'),
    Device: stringAt(device, 'device'),
    ShareID: stringAt(device, 'shareID'),
  };
  return printed(JSON.stringify(form));
}

/** What drivers say of the devices that were allocated. */
function checkReports(
  found: Findings,
  reports: readonly JsonValue[],
  allocation: JsonObject | undefined,
): void {
  const allocated = new Set(listAt(allocation, 'devices', 'results').map(deviceKey));
  checkBounded(found, 'status.devices', reports, Infinity, (report, at) => {
    checkDeviceId(found, at, report);
    if (!allocated.has(deviceKey(report))) {
      const text = 'must be an allocated device in the claim';
      found.push(invalidValue(at, deviceForm(report), text));
    }
    const conditions = listAt(report, 'conditions');
    if (conditions.length > CONDITIONS_MAX) {
      found.push(tooMany(`${at}.conditions`, conditions.length, CONDITIONS_MAX));
    }
    checkConditions(found, `${at}.conditions`, conditions);
    const { data } = report;
    if (data !== undefined && data !== null) checkRaw(found, `${at}.data`, data, false);
    const network = objectAt(report, 'networkData');
    if (network !== undefined) checkNetwork(found, `${at}.networkData`, network);
  });
  const keys = new Set<string>();
  for (const [index, report] of reports.entries()) {
    const key = deviceKey(report);
    if (keys.has(key)) {
      found.push(duplicate(`status.devices[${index}]`, deviceForm(report)));
    }
    keys.add(key);
  }
}

function checkDeviceId(found: Findings, path: string, device: JsonObject): void {
  checkDriverName(found, `${path}.driver`, stringAt(device, 'driver'));
  checkPoolName(found, `${path}.pool`, stringAt(device, 'pool'));
  checkDnsLabel(found, `${path}.device`, stringAt(device, 'device'));
  checkShare(found, path, device);
}

function checkShare(found: Findings, path: string, device: JsonObject): void {
  const share = device['shareID'];
  if (typeof share === 'string') checkUuid(found, `${path}.shareID`, share);
}

function checkNetwork(found: Findings, path: string, network: JsonObject): void {
  const name = stringAt(network, 'interfaceName');
  if (Buffer.byteLength(name) > INTERFACE_LENGTH_MAX) {
    found.push(tooLong(`${path}.interfaceName`, INTERFACE_LENGTH_MAX));
  }
  const hardware = stringAt(network, 'hardwareAddress');
  if (Buffer.byteLength(hardware) > HARDWARE_ADDRESS_LENGTH_MAX) {
    found.push(tooLong(`${path}.hardwareAddress`, HARDWARE_ADDRESS_LENGTH_MAX));
  }
  const addresses = listAt(network, 'ips');
  const isFine = checkTexts(found, `${path}.ips`, addresses, ADDRESSES_MAX, (text, at) => {
    checkInterfaceAddress(found, at, text);
  });
  if (isFine) checkRepeats(found, `${path}.ips`, addresses, TEXT_OF);
}

/** An address with the length of its network's prefix, in canonical form. */
function checkInterfaceAddress(found: Findings, path: string, text: string): void {
  const network = parseNetwork(text);
  if (network === undefined) {
    const detail = 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)';
    found.push(invalidValue(path, text, detail));
    return;
  }
  const form = `${ipText(network.address)}/${network.bits}`;
  if (text !== form) {
    found.push(invalidValue(path, text, `must be in canonical form ("${form}")`));
  }
}

function checkAllocation(
  found: Findings,
  path: string,
  allocation: JsonObject,
  names: RequestNames,
): void {
  const results = listAt(allocation, 'devices', 'results');
  checkBounded(found, `${path}.devices.results`, results, ENTRIES_MAX, (result, at) => {
    checkRequestReference(found, `${at}.request`, stringAt(result, 'request'), names);
    checkDriverName(found, `${at}.driver`, stringAt(result, 'driver'));
    checkPoolName(found, `${at}.pool`, stringAt(result, 'pool'));
    checkDnsLabel(found, `${at}.device`, stringAt(result, 'device'));
    checkBindingConditions(found, at, result);
    checkShare(found, at, result);
  });
  const configs = listAt(allocation, 'devices', 'config');
  checkBounded(found, `${path}.devices.config`, configs, 2 * ENTRIES_MAX, (config, at) => {
    const source = stringAt(config, 'source');
    const sources = ['FromClaim', 'FromClass'];
    if (source === '') found.push(required(`${at}.source`));
    else if (!sources.includes(source)) {
      found.push(notSupported(`${at}.source`, source, sources));
    }
    checkRequestReferences(found, `${at}.requests`, listAt(config, 'requests'), names);
    checkDeviceConfig(found, at, config, false);
  });
  const selector = objectAt(allocation, 'nodeSelector');
  if (selector !== undefined) checkNodeSelector(found, `${path}.nodeSelector`, selector);
}
