/** Which taints a pod bears, and for how long. */
import type { JsonValue } from '@megaplane/machinery/json-value';
import { stringAt, valueAt } from '@megaplane/machinery/json';

export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

export function taintOf(value: JsonValue): Taint {
  return {
    key: stringAt(value, 'key'),
    value: stringAt(value, 'value'),
    effect: stringAt(value, 'effect'),
  };
}

/** An empty key tolerates every key, an empty effect every effect. */
export function tolerates(toleration: JsonValue, taint: Taint): boolean {
  const effect = stringAt(toleration, 'effect');
  if (effect !== '' && effect !== taint.effect) return false;
  const key = stringAt(toleration, 'key');
  if (key !== '' && key !== taint.key) return false;
  const operator = stringAt(toleration, 'operator');
  if (operator === 'Exists') return true;
  if (operator !== '' && operator !== 'Equal') return false;
  return stringAt(toleration, 'value') === taint.value;
}

/**
 * How long a pod with these tolerations may stay beside these NoExecute taints: 0 = not at all,
 * Infinity = for good. Of all tolerations that are used the shortest counts.
 */
export function staySeconds(tolerations: readonly JsonValue[], taints: readonly Taint[]): number {
  let seconds = Infinity;
  for (const taint of taints) {
    const used = tolerations.find((one) => tolerates(one, taint));
    if (used === undefined) return 0;
    const limit = valueAt(used, 'tolerationSeconds');
    if (typeof limit === 'number') seconds = Math.min(seconds, Math.max(0, limit));
  }
  return seconds;
}
