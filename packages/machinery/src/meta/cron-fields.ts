/**
 * The fields of cron schedules, as the parser that upstream uses reads them (robfig/cron v3): five
 * of them, or a descriptor in their place; and what it says of text that is none.
 */

import { ownMember } from '@megaplane/base/members';
import { quoted } from '../json/quoting.ts';
import { durationFault } from './times.ts';

/** Values of a field as bits, and whether it was a star. */
export interface CronField {
  readonly bits: bigint;
  readonly isStar: boolean;
}

interface FieldRule {
  readonly least: number;
  readonly most: number;
  readonly names: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const FIELDS: readonly FieldRule[] = [
  { least: 0, most: 59, names: [] },
  { least: 0, most: 23, names: [] },
  { least: 1, most: 31, names: [] },
  { least: 1, most: 12, names: ['', ...MONTHS] },
  { least: 0, most: 6, names: DAYS },
];
const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const EVERY = '@every ';

/** Minutes, hours, days, months and days of the week; a text where there are none. */
export function parseCronFields(text: string): readonly CronField[] | string {
  const expression = text.startsWith('@') ? ownMember(DESCRIPTORS, text) : text;
  if (expression === undefined) return `unrecognized descriptor: ${text}`;
  const parts = expression.split(/\s+/).filter((part) => part !== '');
  if (parts.length !== FIELDS.length) {
    return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`;
  }
  const fields: CronField[] = [];
  for (const [index, rule] of FIELDS.entries()) {
    const field = parseField(parts[index] ?? '', rule);
    if (typeof field === 'string') return field;
    fields.push(field);
  }
  return fields;
}

/** What is wrong with a schedule, or ''. */
export function cronFault(text: string): string {
  if (text.startsWith(EVERY)) {
    const fault = durationFault(text.slice(EVERY.length));
    return fault === '' ? '' : `failed to parse duration ${text}: ${fault}`;
  }
  const fields = parseCronFields(text);
  return typeof fields === 'string' ? fields : '';
}

function parseField(text: string, rule: FieldRule): CronField | string {
  let bits = 0n;
  let isStar = false;
  for (const part of text.split(',')) {
    if (part === '') continue;
    const range = parseRange(part, rule);
    if (typeof range === 'string') return range;
    bits |= range.bits;
    if (range.isStar) isStar = true;
  }
  return { bits, isStar };
}

/** `*`, `?`, `n`, `a-b`, each with `/step`; `n/step` goes to the end. */
function parseRange(text: string, rule: FieldRule): CronField | string {
  const [range = '', stepText, ...slashes] = text.split('/');
  const [fromText = '', toText, ...hyphens] = range.split('-');
  const isStar = fromText === '*' || fromText === '?';
  const from = isStar ? rule.least : valueOf(fromText, rule.names);
  if (typeof from === 'string') return from;
  const named = isStar ? rule.most : toText === undefined ? from : valueOf(toText, rule.names);
  if (typeof named === 'string') return named;
  if (!isStar && hyphens.length > 0) return `too many hyphens: ${text}`;
  const step = stepText === undefined ? 1 : valueOf(stepText, []);
  if (typeof step === 'string') return step;
  if (slashes.length > 0) return `too many slashes: ${text}`;
  const to = stepText !== undefined && toText === undefined ? rule.most : named;
  const { least, most } = rule;
  if (from < least) return `beginning of range (${from}) below minimum (${least}): ${text}`;
  if (to > most) return `end of range (${to}) above maximum (${most}): ${text}`;
  if (from > to) return `beginning of range (${from}) beyond end of range (${to}): ${text}`;
  if (step === 0) return `step of range should be a positive number: ${text}`;
  let bits = 0n;
  for (let value = from; value <= to; value += step) bits |= 1n << BigInt(value);
  return { bits, isStar: isStar && step === 1 };
}

function valueOf(text: string, names: readonly string[]): number | string {
  const name = text === '' ? -1 : names.indexOf(text.toLowerCase());
  if (name >= 0) return name;
  if (/^\+?\d+$/.test(text)) return Number(text);
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${quoted(text)}: invalid syntax`;
}
