/** Network policies: ports and peers of their rules. */

import { forbiddenField, invalidValue, notSupported, required } from '../../meta/fielderrors.ts';
import { networkStart, parseNetwork, type IpNetwork } from '../../meta/ip-address.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { portNameErrors, portNumberErrors } from '../../meta/names.ts';
import { checkCidr } from '../field/validation-addresses.ts';
import {
  checkSelector,
  eachObject,
  invalidEach,
  type Findings,
} from '../field/validation-rules.ts';
import type { RuleTable } from '../field/rule-table.ts';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const TYPES = ['Ingress', 'Egress'];

export const NETWORK_POLICY_RULES: RuleTable = {
  'networkpolicies.networking.k8s.io': { create: checkPolicy },
};

function checkPolicy(found: Findings, policy: JsonObject): void {
  const spec = objectAt(policy, 'spec') ?? {};
  checkSelector(found, 'spec.podSelector', objectAt(spec, 'podSelector'));
  for (const [field, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    eachObject(listAt(spec, field), `spec.${field}`, (rule, at) => {
      eachObject(listAt(rule, 'ports'), `${at}.ports`, (port, item) => {
        checkPort(found, item, port);
      });
      eachObject(listAt(rule, peers), `${at}.${peers}`, (peer, item) => {
        checkPeer(found, item, peer);
      });
    });
  }
  const types = listAt(spec, 'policyTypes');
  if (types.length > TYPES.length) {
    const text = 'may not specify more than two policyTypes';
    found.push(invalidValue('spec.policyTypes', [...types], text));
    return;
  }
  for (const [index, type] of types.entries()) {
    if (typeof type === 'string' && TYPES.includes(type)) continue;
    found.push(notSupported(`spec.policyTypes[${index}]`, type, TYPES));
  }
}

function checkPort(found: Findings, path: string, item: JsonObject): void {
  const { protocol, port, endPort: end } = item;
  if (typeof protocol === 'string' && !PROTOCOLS.includes(protocol)) {
    found.push(notSupported(`${path}.protocol`, protocol, PROTOCOLS));
  }
  const at = `${path}.endPort`;
  if (typeof port === 'number') {
    invalidEach(found, `${path}.port`, port, portNumberErrors(port));
    if (typeof end !== 'number') return;
    if (end < port) {
      found.push(invalidValue(at, port, 'must be greater than or equal to `port`'));
    }
    invalidEach(found, at, end, portNumberErrors(end));
    return;
  }
  const state = typeof port === 'string' ? 'non-numeric' : 'not specified';
  if (typeof end === 'number') {
    found.push(invalidValue(at, end, `may not be specified when \`port\` is ${state}`));
  }
  if (typeof port === 'string') invalidEach(found, `${path}.port`, port, portNameErrors(port));
}

function checkPeer(found: Findings, path: string, peer: JsonObject): void {
  const selectors = ['podSelector', 'namespaceSelector'].filter((field) => isSet(peer, field));
  for (const field of selectors) checkSelector(found, `${path}.${field}`, objectAt(peer, field));
  const block = objectAt(peer, 'ipBlock');
  if (block !== undefined) checkBlock(found, `${path}.ipBlock`, block);
  else if (selectors.length === 0) found.push(required(path, 'must specify a peer'));
  if (block !== undefined && selectors.length > 0) {
    found.push(forbiddenField(path, 'may not specify both ipBlock and another peer'));
  }
}

function isSet(peer: JsonObject, field: string): boolean {
  return objectAt(peer, field) !== undefined;
}

function checkBlock(found: Findings, path: string, block: JsonObject): void {
  const network = stringAt(block, 'cidr');
  if (network === '') {
    found.push(required(`${path}.cidr`));
    return;
  }
  checkCidr(found, `${path}.cidr`, network);
  // what can be read is compared, however it is written
  const whole = parseNetwork(network);
  if (whole === undefined) return;
  for (const [index, exception] of listAt(block, 'except').entries()) {
    const at = `${path}.except[${index}]`;
    checkCidr(found, at, exception);
    const part = typeof exception === 'string' ? parseNetwork(exception) : undefined;
    if (part === undefined || isWithin(part, whole)) continue;
    found.push(invalidValue(at, exception, 'must be a strict subset of `cidr`'));
  }
}

/** True if one network is part of the other, and smaller. */
function isWithin(part: IpNetwork, whole: IpNetwork): boolean {
  if (part.bitsMax !== whole.bitsMax || part.bits <= whole.bits) return false;
  const start = networkStart(whole);
  return networkStart({ ...part, bits: whole.bits }).every((byte, at) => byte === start[at]);
}
