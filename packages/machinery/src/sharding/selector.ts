/**
 * Shard selectors (KEP-5866): the part of a collection whose hash lies in given ranges.
 *
 *     shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || ...
 *
 * The text is a CEL expression that is parsed and never evaluated; texts of refusals are
 * kube-apiserver v1.36's.
 */
import { ownMember } from '@megaplane/base/members';
import { quoted } from '../json/quoting.ts';
import { KIND, parseExpression, type Expression } from './syntax.ts';

export type ShardField = 'uid' | 'namespace';

/** Hashes in `[start, end)`, in halves of 32 bits; an end of 2^64 has 2^32 as its high half. */
export interface ShardRange {
  readonly startHigh: number;
  readonly startLow: number;
  readonly endHigh: number;
  readonly endLow: number;
}

export interface ShardSelector {
  readonly field: ShardField;
  /** In order and apart from each other. */
  readonly ranges: readonly ShardRange[];
  /** The form that `shardInfo` shows. */
  readonly text: string;
}

export type ParsedShard =
  | { readonly ok: true; readonly selector: ShardSelector }
  | { readonly ok: false; readonly error: string };

interface Term {
  readonly path: string;
  readonly start: string;
  readonly end: string;
}

const PATHS: Readonly<Record<string, ShardField>> = {
  'object.metadata.uid': 'uid',
  'object.metadata.namespace': 'namespace',
};
const WHOLE = '0x10000000000000000';
const LOW_BITS = 0xffffffffn;

/** Reads a selector; `error` is upstream's text of what is wrong with it. */
export function parseShardSelector(text: string): ParsedShard {
  const trimmed = text.trim();
  if (trimmed === '') {
    const error = 'empty shard selector is not allowed; omit the parameter for unfiltered lists';
    return { ok: false, error };
  }
  const expression = parseExpression(trimmed);
  if (typeof expression === 'string') {
    return { ok: false, error: `CEL parse error: ${expression}` };
  }
  const terms: Term[] = [];
  const error = collect(expression, terms);
  if (error !== '') return { ok: false, error };
  const [first] = terms;
  const path = first?.path ?? '';
  const other = terms.find((term) => term.path !== path);
  if (other !== undefined) {
    const both = `${quoted(path)} and ${quoted(other.path)}`;
    return { ok: false, error: `all shard ranges must use the same field, got ${both}` };
  }
  return { ok: true, selector: selectorOf(terms, path) };
}

function selectorOf(terms: readonly Term[], path: string): ShardSelector {
  return {
    field: ownMember(PATHS, path) ?? 'uid',
    ranges: merged(terms),
    text: terms.map(({ start, end }) => `shardRange(${path}, '${start}', '${end}')`).join(' || '),
  };
}

/** Ranges in order, those that touch or overlap made one. */
function merged(terms: readonly Term[]): ShardRange[] {
  const bounds = terms.map(({ start, end }): [bigint, bigint] => [BigInt(start), BigInt(end)]);
  bounds.sort(([one], [other]) => (one < other ? -1 : 1));
  const joined: [bigint, bigint][] = [];
  for (const [start, end] of bounds) {
    const last = joined.at(-1);
    if (last === undefined || last[1] < start) joined.push([start, end]);
    else if (last[1] < end) last[1] = end;
  }
  return joined.map(([start, end]) => ({
    startHigh: Number(start >> 32n),
    startLow: Number(start & LOW_BITS),
    endHigh: Number(end >> 32n),
    endLow: Number(end & LOW_BITS),
  }));
}

/** Adds the terms of an expression; returns what is wrong with it, or ''. */
function collect(expression: Expression, terms: Term[]): string {
  if (expression.kind !== KIND.call) {
    const { kind } = expression;
    return `unexpected expression kind ${kind}; expected shardRange() call or || operator`;
  }
  const { name, args } = expression;
  if (name === '_||_') {
    for (const side of args) {
      const error = collect(side, terms);
      if (error !== '') return error;
    }
    return '';
  }
  if (name !== 'shardRange') {
    return `unsupported function ${quoted(name)}; only shardRange() and || are allowed`;
  }
  const term = termOf(args);
  if (typeof term === 'string') return term;
  terms.push(term);
  return '';
}

function termOf(args: readonly Expression[]): Term | string {
  const [field, from, to] = args;
  if (args.length !== 3 || field === undefined || from === undefined || to === undefined) {
    return `shardRange() requires exactly 3 arguments, got ${args.length}`;
  }
  const path = pathOf(field);
  if (typeof path === 'number') {
    const wanted = 'expected field path (e.g. object.metadata.uid)';
    return `shardRange() first argument: ${wanted}, got expression kind ${path}`;
  }
  if (ownMember(PATHS, path) === undefined) {
    const supported = Object.keys(PATHS).join(', ');
    return `unsupported field path ${quoted(path)}; supported: ${supported}`;
  }
  const start = boundOf(from, 'hexStart');
  if (!start.ok) return start.error;
  const end = boundOf(to, 'hexEnd');
  if (!end.ok) return end.error;
  if (!isBefore(start.hex, end.hex)) {
    return `shard range start ${start.hex} must be less than end ${end.hex}`;
  }
  return { path, start: start.hex, end: end.hex };
}

/** The names of a chain of selections joined by dots, or the kind of what is none. */
function pathOf(expression: Expression): string | number {
  const names: string[] = [];
  let part = expression;
  while (part.kind === KIND.select) {
    names.push(part.name);
    part = part.operand;
  }
  if (part.kind !== KIND.identifier) return part.kind;
  names.push(part.name);
  return names.reverse().join('.');
}

type Bound = { readonly ok: true; readonly hex: string } | { readonly ok: false; error: string };

function boundOf(expression: Expression, name: string): Bound {
  const error = boundFault(expression, name);
  if (error !== '' || expression.kind !== KIND.literal) return { ok: false, error };
  return { ok: true, hex: expression.text };
}

function boundFault(expression: Expression, name: string): string {
  if (expression.kind !== KIND.literal) {
    const found = `got expression kind ${expression.kind}`;
    return `${name} must be a string literal (e.g. '0xff'), ${found}`;
  }
  const { type, text } = expression;
  if (type !== 'string') return `${name} must be a string literal, got ${type}`;
  if (!text.startsWith('0x')) return `${name} must have '0x' prefix, got ${quoted(text)}`;
  const hex = text.slice(2);
  if (hex === '') return `${name}: hex value is required after '0x'`;
  const size = Buffer.byteLength(hex);
  if (size > 17) {
    return `${name}: hex value too long (${size} chars, max 17): ${quoted(hex)}`;
  }
  for (const digit of hex) {
    if (/[^0-9a-f]/.test(digit)) {
      return `${name}: invalid hex character ${quoted(digit)} in ${quoted(text)}`;
    }
  }
  if (hex.length === 17 && text !== WHOLE) {
    return `${name}: 17-digit hex value must be '${WHOLE}' (2^64), got ${quoted(text)}`;
  }
  if (hex.length < 16) {
    const meant = quoted(`0x${hex.padStart(16, '0')}`);
    const wanted = 'must be a 0x-prefixed 16-digit hex value';
    return `${name} ${wanted}, got ${quoted(text)} (did you mean ${meant}?)`;
  }
  return '';
}

/** Longer is larger; of one length the digits decide. */
function isBefore(one: string, other: string): boolean {
  return one.length === other.length ? one < other : one.length < other.length;
}

/** True where a range holds the hash whose halves are given. */
export function selectsHash(selector: ShardSelector, high: number, low: number): boolean {
  for (const { startHigh, startLow, endHigh, endLow } of selector.ranges) {
    const isFrom = high > startHigh || (high === startHigh && low >= startLow);
    if (isFrom && (high < endHigh || (high === endHigh && low < endLow))) return true;
  }
  return false;
}

/**
 * The selector of part `index` of `count` equal parts of all hashes, as the KEP cuts them: the last
 * one takes what the division leaves.
 */
export function shardOf(index: number, count: number, field: ShardField = 'uid'): string {
  const span = 2n ** 64n / BigInt(count);
  const hex = (bound: bigint): string => `0x${bound.toString(16).padStart(16, '0')}`;
  const start = hex(BigInt(index) * span);
  const end = index === count - 1 ? WHOLE : hex(BigInt(index + 1) * span);
  return `shardRange(object.metadata.${field}, '${start}', '${end}')`;
}
