/** Identity of a gang: pods that ask for one value of a topology key by one selector. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { byUtf8 } from './text-order.ts';

/**
 * The text of a `coLocation`; empty if it names no topology key. `namespace` keeps gangs of other
 * namespaces apart; empty: a selector means the same gang everywhere, as the reference has it.
 */
export function groupOf(coLocation: JsonObject | undefined, namespace: string): string {
  const topologyKey = stringAt(coLocation, 'topologyKey');
  if (topologyKey === '') return '';
  const group = `${topologyKey}\0${selectorText(objectAt(coLocation, 'labelSelector'))}`;
  return namespace === '' ? group : `${group}\0${namespace}`;
}

function selectorText(selector: JsonObject | undefined): string {
  if (selector === undefined) return '';
  const labels = objectAt(selector, 'matchLabels') ?? {};
  let text = '';
  for (const key of Object.keys(labels).sort(byUtf8)) text += `${key}=${stringAt(labels, key)},`;
  const expressions: (readonly [string, string, string])[] = [];
  for (const expression of listAt(selector, 'matchExpressions')) {
    const values = textsAt(expression as JsonObject, 'values').sort(byUtf8);
    const key = stringAt(expression, 'key');
    expressions.push([key, stringAt(expression, 'operator'), values.join(',')]);
  }
  expressions.sort((a, b) => byUtf8(a[0], b[0]) || byUtf8(a[1], b[1]) || byUtf8(a[2], b[2]));
  return `${text};${expressions.map((parts) => `${parts.join(' ')};`).join('')}`;
}

function textsAt(value: JsonObject, field: string): string[] {
  return listAt(value, field).filter((text) => typeof text === 'string');
}
