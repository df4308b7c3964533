/**
 * FieldsV1 with holes where objects of one make differ: the uids of owners, the addresses of pods,
 * the items of sets. What fills the holes stands beside the text, in its order.
 */

import { parseJson } from '../json/json-text.ts';
import { goJson } from './path-element.ts';
import { stepText } from './field-set-codec.ts';
import type { FieldSet } from './field-set.ts';

export const HOLE = '\u0001';
/** Items that are told apart by what differs from object to object. */
const HOLED_KEY = /^k:\{"(uid|ip)":(".*")\}$/s;

/** Texts of steps without holes that are remembered; beyond it they are made again. */
const TEXTS_MAX = 16_384;
const texts = new Map<string, string>();

export interface Holed {
  readonly text: string;
  readonly fills: readonly string[];
}

export function holedFields(set: FieldSet): Holed {
  const fills: string[] = [];
  return { text: holedLevel(set, false, fills), fills };
}

function holedLevel(set: FieldSet, hasSelf: boolean, fills: string[]): string {
  let text = hasSelf ? '{".":{}' : '{';
  let isFirst = !hasSelf;
  for (const step of set.sortedSteps()) {
    if (!isFirst) text += ',';
    isFirst = false;
    text += `${holedStep(step, fills)}:`;
    const below = set.below(step);
    text += below === null ? '{}' : holedLevel(below, set.hasStep(step), fills);
  }
  return `${text}}`;
}

/** The step as a member's name, with a hole where it needs one. */
export function holedStep(step: string, fills: string[]): string {
  const known = texts.get(step);
  if (known !== undefined) return known;
  if (step.startsWith('v:"')) {
    fills.push(parseJson(step.slice(2)) as string);
    return `"v:\\"${HOLE}\\""`;
  }
  const key = step.startsWith('k:') ? HOLED_KEY.exec(step) : null;
  if (key === null || key[2] === undefined) {
    const text = stepText(step);
    if (texts.size >= TEXTS_MAX) texts.clear();
    texts.set(step, text);
    return text;
  }
  fills.push(parseJson(key[2]) as string);
  return `"k:{\\"${key[1] ?? ''}\\":\\"${HOLE}\\"}"`;
}

/** A fill as it stands in a member's name: a JSON string within a JSON string. */
export function fillText(fill: string): string {
  if (/^[A-Za-z0-9.:/_-]*$/.test(fill)) return fill;
  return JSON.stringify(goJson(fill).slice(1, -1)).slice(1, -1);
}
