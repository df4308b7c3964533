/**
 * Faults of simulated nodes: which nodes, what is wrong with them, and until when.
 *
 * They stand in one ConfigMap, so that one write reaches any number of simulators, and a simulator
 * that starts anew goes on with them.
 */
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { matchesLabels, parseLabelSelector } from '@megaplane/machinery/selectors';

export const FAULTS_NAMESPACE = 'kube-system';
export const FAULTS_NAME = 'megaplane-nodes-faults';
/** Key of the ConfigMap's data. */
export const FAULTS_KEY = 'faults';
/** More at once are refused. */
export const FAULTS_MAX = 200;

export interface Fault {
  readonly id: string;
  /** `down`: nothing comes from the node. `flap`: it is ready and not ready in turns. */
  readonly kind: 'down' | 'flap';
  /** Of labels; '' for all nodes. */
  readonly selector: string;
  /** Nodes by name; empty: all that the selector leaves. */
  readonly names: readonly string[];
  /** Of these nodes, chosen by the hash of name and id. */
  readonly percent: number;
  /** Milliseconds since 1970; 0: until it is healed. */
  readonly untilMs: number;
  /** How long a flapping node takes to go and come back. */
  readonly periodMs: number;
}

/** The faults in a ConfigMap; throws an Error that says what is wrong with it. */
export function readFaults(configMap: JsonObject): readonly Fault[] {
  const text = stringAt(configMap, 'data', FAULTS_KEY);
  if (text === '') return [];
  const found: unknown = parseJson(text);
  if (!Array.isArray(found)) throw new Error(`${FAULTS_NAME}: ${FAULTS_KEY} is no list`);
  return found.slice(0, FAULTS_MAX).map((item) => readFault(item as JsonObject));
}

function readFault(item: JsonObject): Fault {
  const id = isObject(item) ? stringAt(item, 'id') : '';
  const kind = stringAt(item, 'kind');
  if (id === '' || (kind !== 'down' && kind !== 'flap')) {
    throw new Error(`${FAULTS_NAME}: ${JSON.stringify(item)} is no fault`);
  }
  const selector = stringAt(item, 'selector');
  const parsed = parseLabelSelector(selector);
  if ('error' in parsed) throw new Error(`${FAULTS_NAME}: ${id}: ${parsed.error}`);
  const names = listAt(item, 'names').filter((name) => typeof name === 'string');
  const percent = numberAt(item, 'percent');
  const periodMs = Math.max(1000, numberAt(item, 'periodMs'));
  return { id, kind, selector, names, percent, untilMs: numberAt(item, 'untilMs'), periodMs };
}

/** Whether the percentage takes a node of the selector; names are hashed with the fault's id. */
export function takes({ id, percent, names }: Fault, name: string): boolean {
  if (names.length > 0 && !names.includes(name)) return false;
  if (percent >= 100) return true;
  return hashOf(`${id}/${name}`) < (percent / 100) * 2 ** 32;
}

/** The same by its labels. */
export function covers(fault: Fault, name: string, labels: JsonObject): boolean {
  if (!takes(fault, name)) return false;
  const parsed = parseLabelSelector(fault.selector);
  return !('error' in parsed) && matchesLabels(parsed.value, labels);
}

/** FNV-1a with a last mixing: neighbours' names differ in one digit only. */
export function hashOf(text: string): number {
  let hash = 2_166_136_261;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Whether a flapping node is ready now. Nodes flap by turns, each at its own moment. */
export function isUp({ id, periodMs }: Fault, name: string, nowMs: number): boolean {
  return phaseMs(id, periodMs, name, nowMs) < periodMs / 2;
}

/** How long until a flapping node turns over. */
export function turnMs({ id, periodMs }: Fault, name: string, nowMs: number): number {
  const phase = phaseMs(id, periodMs, name, nowMs);
  return phase < periodMs / 2 ? periodMs / 2 - phase : periodMs - phase;
}

function phaseMs(id: string, periodMs: number, name: string, nowMs: number): number {
  return (nowMs + (hashOf(`${name}/${id}`) % periodMs)) % periodMs;
}
