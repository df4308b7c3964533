/** Tolerations of two sources as one list (upstream's `pkg/util/tolerations`). */
import { equals, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';

type Tolerations = readonly JsonValue[];

/** Whether `wide` tolerates all that `narrow` does; what upstream's helper calls a superset. */
export function covers(wide: JsonValue, narrow: JsonValue): boolean {
  if (equals(wide, narrow)) return true;
  const text = (from: JsonValue, field: string): string => stringAt(from, field);
  const operator = text(wide, 'operator');
  const isAnyKey = text(wide, 'key') === '' && operator === 'Exists';
  if (text(narrow, 'key') !== text(wide, 'key') && !isAnyKey) return false;
  const effect = text(wide, 'effect');
  if (text(narrow, 'effect') !== effect && effect !== '') return false;
  const limit = isObject(wide) ? wide['tolerationSeconds'] : undefined;
  if (effect === 'NoExecute' && typeof limit === 'number') {
    const own = isObject(narrow) ? narrow['tolerationSeconds'] : undefined;
    if (typeof own !== 'number' || own > limit) return false;
  }
  if (operator === 'Exists') return true;
  if (operator !== '' && operator !== 'Equal') return false;
  return text(narrow, 'operator') === 'Equal' && text(narrow, 'value') === text(wide, 'value');
}

/** Both lists in one, without those that another one of them covers. */
export function mergedTolerations(first: Tolerations, second: Tolerations): JsonValue[] {
  const all = [...first, ...second];
  const kept: JsonValue[] = [];
  for (const [index, own] of all.entries()) {
    const isKnown = kept.some((one) => covers(one, own));
    const later = all.slice(index + 1);
    if (isKnown || later.some((one) => !equals(one, own) && covers(one, own))) continue;
    kept.push(own);
  }
  return kept;
}
