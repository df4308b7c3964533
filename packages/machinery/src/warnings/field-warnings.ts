/** Warnings that many kinds share. */
import { hasExcessBits, ipText, networkText, parseIp, parseNetwork } from '../meta/ip-address.ts';
import { listAt, stringAt } from '../json/json.ts';
import type { JsonValue } from '../json/json-value.ts';
import { labelValueErrors } from '../meta/names.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import { quoted } from '../json/quoting.ts';

/** Labels of nodes that have other names now. */
const NODE_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region':
    'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone':
    'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type':
    'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods':
    'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
};

/** What is to be said of a label of nodes; undefined for nothing. */
export function nodeLabelWarning(label: string): string | undefined {
  return Object.hasOwn(NODE_LABELS, label) ? NODE_LABELS[label] : undefined;
}

/** Of a term of a node selector; `hasValues` where values that no label can have are told too. */
export function* nodeTermWarnings(
  path: string,
  term: JsonValue | undefined,
  hasValues: boolean,
): Iterable<string> {
  for (const [index, expression] of listAt(term, 'matchExpressions').entries()) {
    const at = `${path}.matchExpressions[${index}]`;
    const key = stringAt(expression, 'key');
    const text = nodeLabelWarning(key);
    if (text !== undefined) yield `${at}.key: ${key} is ${text}`;
    if (!hasValues) continue;
    for (const [place, value] of listAt(expression, 'values').entries()) {
      if (typeof value !== 'string') continue;
      for (const fault of labelValueErrors(value)) {
        yield `${at}.values[${place}]: ${value} is invalid, ${fault}`;
      }
    }
  }
}

/** Of an address that is taken, though it should be written otherwise. */
export function* ipWarnings(path: string, value: JsonValue | undefined): Iterable<string> {
  const text = typeof value === 'string' ? value : '';
  const address = parseIp(text);
  if (address === undefined) return;
  const form = ipText(address);
  if (address.hasLeadingZeros || address.isMapped) {
    yield `${path}: non-standard IP address ${quoted(text)} is invalid: use "${form}"`;
  } else if (!address.isIpv4 && form !== text) {
    const wanted = `should be in RFC 5952 canonical format ("${form}")`;
    yield `${path}: IPv6 address ${quoted(text)} ${wanted}`;
  }
}

/** Of a network that is taken, though it should be written otherwise. */
export function* networkWarnings(path: string, value: JsonValue | undefined): Iterable<string> {
  const text = typeof value === 'string' ? value : '';
  const network = parseNetwork(text);
  if (network === undefined) return;
  const { address } = network;
  const form = networkText(network);
  const isLoose = hasExcessBits(network);
  const isOdd = network.hasLeadingZeros || address.isMapped;
  if (isLoose) {
    const single = `${ipText(address)}/${address.isIpv4 ? 32 : 128}`;
    const other = `(should be "${form}" or "${single}"?)`;
    yield `${path}: CIDR value ${quoted(text)} is ambiguous in this context ${other}`;
  }
  if (isOdd) yield `${path}: non-standard CIDR value ${quoted(text)} is invalid: use "${form}"`;
  if (!isLoose && !isOdd && !address.isIpv4 && form !== text) {
    const wanted = `should be in RFC 5952 canonical format ("${form}")`;
    yield `${path}: IPv6 CIDR value ${quoted(text)} ${wanted}`;
  }
}

/** Of an amount of bytes that is no whole number. */
export function* fractionWarnings(path: string, value: JsonValue | undefined): Iterable<string> {
  const amount = typeof value === 'string' ? parseQuantity(value) : undefined;
  if (!(amount instanceof Quantity) || !amount.hasFraction) return;
  yield `${path}: fractional byte value "${amount.toString()}" is invalid, must be an integer`;
}
