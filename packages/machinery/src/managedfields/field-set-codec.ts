/**
 * FieldsV1: a set of fields as JSON. An object per level, its members the steps; `{}` below a field
 * that is owned and has nothing owned below it; `"."` in the object of a field that is owned itself
 * and has owned fields below it.
 */

import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { FieldSet } from './field-set.ts';
import { parseStep } from './path-element.ts';

/** The one written form of a set. */
export function encodeFields(set: FieldSet): string {
  return encodeLevel(set, false);
}

function encodeLevel(set: FieldSet, hasSelf: boolean): string {
  let text = hasSelf ? '{".":{}' : '{';
  let isFirst = !hasSelf;
  for (const step of set.sortedSteps()) {
    if (!isFirst) text += ',';
    isFirst = false;
    const below = set.below(step);
    text += `${stepText(step)}:`;
    text += below === null ? '{}' : encodeLevel(below, set.hasStep(step));
  }
  return `${text}}`;
}

/** The step as a member's name. */
export function stepText(step: string): string {
  return PLAIN.test(step) ? `"${step}"` : JSON.stringify(step);
}

const PLAIN = /^[ !#-[\]-~]*$/;

/** Reads a set; null where it is none. Steps of kinds that are not known are dropped. */
export function decodeFields(value: JsonValue | undefined): FieldSet | null {
  if (value === undefined || value === null) return new FieldSet();
  if (!isObject(value)) return null;
  try {
    return decodeLevel(value);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function decodeLevel(level: JsonObject): FieldSet {
  const set = new FieldSet();
  for (const name of Object.keys(level)) {
    if (name === '.') continue;
    const step = parseStep(name);
    if (step === null) continue;
    const inner = level[name];
    if (!isObject(inner)) throw new SyntaxError(`fields: no object below ${name}`);
    const below = decodeLevel(inner);
    set.put(step, below.isEmpty || Object.hasOwn(inner, '.'), below);
  }
  return set;
}
