/** Lists and maps of devices: bounded, each entry judged, entries that must differ. */
import { duplicate, tooMany } from '../../meta/fielderrors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { eachObject, type Findings } from '../field/validation-rules.ts';

export const TEXT_OF = (item: JsonValue): string => (typeof item === 'string' ? item : '');

/** A list of at most `max` objects; a longer one is not looked into. False: it was too long. */
export function checkBounded(
  found: Findings,
  path: string,
  list: readonly JsonValue[],
  max: number,
  check: (item: JsonObject, path: string) => void,
): boolean {
  if (list.length > max) {
    found.push(tooMany(path, list.length, max));
    return false;
  }
  eachObject(list, path, check);
  return true;
}

/** The same for texts. */
export function checkTexts(
  found: Findings,
  path: string,
  list: readonly JsonValue[],
  max: number,
  check: (text: string, path: string) => void,
): boolean {
  if (list.length > max) {
    found.push(tooMany(path, list.length, max));
    return false;
  }
  for (const [index, item] of list.entries()) check(TEXT_OF(item), `${path}[${index}]`);
  return true;
}

/** Entries that come again, by what tells them apart; found after all entries were judged. */
export function checkRepeats(
  found: Findings,
  path: string,
  list: readonly JsonValue[],
  keyOf: (item: JsonValue) => string,
): void {
  const keys = new Set<string>();
  for (const [index, item] of list.entries()) {
    const key = keyOf(item);
    if (keys.has(key)) found.push(duplicate(`${path}[${index}]`, key));
    keys.add(key);
  }
}

/** Keys longer than this stand in paths with their middle left out. */
function shortened(key: string, lengthMax: number): string {
  if (key.length <= lengthMax) return key;
  const rest = lengthMax - 3;
  return `${key.slice(0, Math.ceil(rest / 2))}...${key.slice(-Math.floor(rest / 2))}`;
}

/** A map of objects: findings about a key name the map, those about a value the entry. */
export function checkEntries(
  found: Findings,
  path: string,
  entries: JsonObject | undefined,
  keyLengthMax: number,
  checkKey: (key: string, path: string) => void,
  checkValue: (value: JsonObject, path: string) => void = () => {},
): void {
  for (const [key, value] of Object.entries(entries ?? {})) {
    checkKey(key, path);
    checkValue(isObject(value) ? value : {}, `${path}[${shortened(key, keyLengthMax)}]`);
  }
}
