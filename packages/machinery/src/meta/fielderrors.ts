import type { JsonValue } from '../json/json-value.ts';
import { escapedJson, quoted } from '../json/quoting.ts';

/**
 * What can be wrong with a field: the reason that a Status cause carries, and the words that open
 * its text. `withValue` tells whether the offending value is printed after the words.
 */
export const FIELD_ERROR_KINDS = {
  required: { reason: 'FieldValueRequired', text: 'Required value', withValue: false },
  invalid: { reason: 'FieldValueInvalid', text: 'Invalid value', withValue: true },
  typeInvalid: { reason: 'FieldValueTypeInvalid', text: 'Invalid value', withValue: true },
  notSupported: { reason: 'FieldValueNotSupported', text: 'Unsupported value', withValue: true },
  forbidden: { reason: 'FieldValueForbidden', text: 'Forbidden', withValue: false },
  duplicate: { reason: 'FieldValueDuplicate', text: 'Duplicate value', withValue: true },
  notFound: { reason: 'FieldValueNotFound', text: 'Not found', withValue: true },
  tooLong: { reason: 'FieldValueTooLong', text: 'Too long', withValue: false },
  tooMany: { reason: 'FieldValueTooMany', text: 'Too many', withValue: true },
  tooFew: { reason: 'FieldValueTooFew', text: 'Too few', withValue: true },
  internal: { reason: 'InternalError', text: 'Internal error', withValue: false },
} as const;
export type FieldErrorKind = keyof typeof FIELD_ERROR_KINDS;

/** A finding about one field, already in words: `body` is the text without the path. */
export interface FieldError {
  readonly kind: FieldErrorKind;
  readonly field: string;
  readonly body: string;
}

/** A value whose printed form is not that of its JSON (quantities, durations, Go structs). */
export interface Printed {
  readonly [PRINTED]: string;
}
const PRINTED: unique symbol = Symbol('printed');

/** Wraps a text that stands in an error exactly as given. */
export function printed(text: string): Printed {
  return { [PRINTED]: text };
}

/** A string of a type of its own in Go, or one behind a pointer: Go prints it as JSON. */
export function typedText(value: string): Printed {
  return printed(escapedJson(value));
}

/** A value as field errors print it: strings quoted, composites as JSON, absent as `null`. */
export function printedValue(value: JsonValue | undefined | Printed): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object') return String(value);
  return PRINTED in value ? String(value[PRINTED]) : escapedJson(value);
}

function fieldError(
  kind: FieldErrorKind,
  field: string,
  detail: string,
  value?: JsonValue | Printed,
): FieldError {
  const { text, withValue } = FIELD_ERROR_KINDS[kind];
  const valueText = withValue ? `: ${printedValue(value)}` : '';
  return { kind, field, body: text + valueText + (detail === '' ? '' : `: ${detail}`) };
}

export function required(field: string, detail = ''): FieldError {
  return fieldError('required', field, detail);
}

export function invalidValue(
  field: string,
  value: JsonValue | undefined | Printed,
  detail: string,
): FieldError {
  return fieldError('invalid', field, detail, value ?? null);
}

export function typeInvalid(field: string, value: JsonValue | Printed, detail: string): FieldError {
  return fieldError('typeInvalid', field, detail, value);
}

/** As `notSupported` for fields that are plain strings in Go, where nothing is escaped. */
export function notSupportedText(
  field: string,
  value: string,
  supported: readonly string[],
): FieldError {
  return notSupported(field, printed(quoted(value)), supported);
}

/** `supported` is printed in the order given; rules over sets sort it first. */
export function notSupported(
  field: string,
  value: JsonValue | Printed,
  supported: readonly string[],
): FieldError {
  const list = supported.map(quoted).join(', ');
  // what has a set of values is of a type of its own, which Go prints as JSON
  const shown = typeof value === 'string' ? typedText(value) : value;
  return fieldError('notSupported', field, list && `supported values: ${list}`, shown);
}

export function forbiddenField(field: string, detail: string): FieldError {
  return fieldError('forbidden', field, detail);
}

export function duplicate(field: string, value: JsonValue | Printed): FieldError {
  return fieldError('duplicate', field, '', value);
}

export function fieldNotFound(field: string, value: JsonValue | Printed): FieldError {
  return fieldError('notFound', field, '', value);
}

export function tooLong(
  field: string,
  limit: number,
  unit: string = limit === 1 ? 'byte' : 'bytes',
): FieldError {
  return fieldError('tooLong', field, `may not be more than ${limit} ${unit}`);
}

export function tooMany(field: string, found: number, limit: number): FieldError {
  const items = limit === 1 ? 'item' : 'items';
  return fieldError('tooMany', field, `must have at most ${limit} ${items}`, found);
}

export function tooFew(field: string, found: number, limit: number): FieldError {
  const items = limit === 1 ? 'item' : 'items';
  return fieldError('tooFew', field, `must have at least ${limit} ${items}`, found);
}

export function internalFieldError(field: string, detail: string): FieldError {
  return fieldError('internal', field, detail);
}

/**
 * Several errors as one text, as upstream aggregates them: equal texts once; one text stands
 * alone, several in brackets.
 */
export function aggregate(texts: readonly string[]): string {
  const unique = [...new Set(texts)];
  return unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
}

/** One field error as text: path, colon, body. */
export function fieldErrorText(error: FieldError): string {
  return `${error.field}: ${error.body}`;
}
