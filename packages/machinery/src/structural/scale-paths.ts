/** The values that the scale subresource reads must be numbers and texts where they are. */
import { ownMember } from '@megaplane/base/members';
import { invalidValue, type FieldError } from '../meta/fielderrors.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { goNumber } from '../gotext/go-texts.ts';
import { isGoInt } from '../json/go-integers.ts';

/** Paths of the scale subresource, with the leading point, as the definition has them. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

const INT32_MAX = 2 ** 31 - 1;

type Read =
  | { readonly ok: true; readonly value: JsonValue | undefined }
  | { readonly ok: false; readonly message: string };

/** Go's type of a value, and the value as its accessor errors print it. */
function goType(value: JsonValue): string {
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  if (isNumber(value)) return isGoInt(value) ? 'int64' : 'float64';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'map[string]interface {}';
}

function goValue(value: JsonValue): string {
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goValue).join(' ')}]`;
  if (isNumber(value)) return goNumber(value);
  if (!isObject(value)) return String(value);
  const names = Object.keys(value).sort();
  const texts = names.map((name) => `${name}:${goValue(ownMember(value, name) ?? null)}`);
  return `map[${texts.join(' ')}]`;
}

function readAt(object: JsonObject, steps: readonly string[], wanted: string): Read {
  let value: JsonValue | undefined = object;
  for (const [i, step] of steps.entries()) {
    if (!isObject(value)) {
      const path = `.${steps.slice(0, i + 1).join('.')}`;
      const found: JsonValue = value ?? null;
      if (found === null) return { ok: true, value: undefined };
      const what = `${goValue(found)} is of the type ${goType(found)}`;
      const text = `${path} accessor error: ${what}, expected map[string]interface{}`;
      return { ok: false, message: text };
    }
    value = Object.hasOwn(value, step) ? value[step] : undefined;
    if (value === undefined) return { ok: true, value };
  }
  if (goType(value) === wanted) return { ok: true, value };
  const what = `${goValue(value)} is of the type ${goType(value)}`;
  return {
    ok: false,
    message: `.${steps.join('.')} accessor error: ${what}, expected ${wanted}`,
  };
}

function stepsOf(path: string): string[] {
  return path.replace(/^\./, '').split('.');
}

function checkCount(found: FieldError[], object: JsonObject, path: string): void {
  const read = readAt(object, stepsOf(path), 'int64');
  if (!read.ok) {
    found.push(invalidValue(path, 0, read.message));
    return;
  }
  const { value } = read;
  if (!isNumber(value)) return;
  if (value < 0) found.push(invalidValue(path, value, 'should be a non-negative integer'));
  else if (value > INT32_MAX) {
    found.push(invalidValue(path, value, `should be less than or equal to ${INT32_MAX}`));
  }
}

/** What is wrong with the number of replicas that is wanted. */
export function checkScaleSpec(found: FieldError[], object: JsonObject, scale: ScalePaths): void {
  checkCount(found, object, scale.specReplicasPath);
}

/** What is wrong with the number that is there, and with the selector. */
export function checkScaleStatus(found: FieldError[], object: JsonObject, scale: ScalePaths): void {
  checkCount(found, object, scale.statusReplicasPath);
  const { labelSelectorPath = '' } = scale;
  if (labelSelectorPath === '') return;
  const read = readAt(object, stepsOf(labelSelectorPath), 'string');
  if (!read.ok) found.push(invalidValue(labelSelectorPath, '', read.message));
}

/** What keeps the scale of an object from being read, in the order in which it is. */
export function scaleFault(object: JsonObject, scale: ScalePaths): string | null {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = scale;
  const reads = [
    [specReplicasPath, 'int64'],
    [statusReplicasPath, 'int64'],
    [labelSelectorPath, 'string'],
  ] as const;
  for (const [path, wanted] of reads) {
    const read = path === '' ? null : readAt(object, stepsOf(path), wanted);
    if (read?.ok === false) return read.message;
  }
  return null;
}
