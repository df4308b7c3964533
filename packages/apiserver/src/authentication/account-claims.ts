/**
 * Claims of tokens of service accounts, read as strictly as upstream's library reads them (go-jose
 * into `jwt.Claims` and the private claims of pkg/serviceaccount), in its words where they cannot
 * be read.
 */
import { duplicateFields } from '@megaplane/machinery/strict-json';
import {
  isNumber,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@megaplane/machinery/json-value';
import { LEGACY_ISSUER } from './account-issuer.ts';

/** Clocks differ by so much at most. */
export const LEEWAY_MS = 60_000;

type Shape = 'text' | 'date' | 'texts' | Fields;

/** What a Go struct takes: its name, and the fields that it knows. */
interface Fields {
  readonly type: string;
  readonly fields: Readonly<Record<string, Shape>>;
}

const PUBLIC: Fields = {
  type: 'jwt.Claims',
  fields: {
    iss: 'text',
    sub: 'text',
    aud: 'texts',
    exp: 'date',
    nbf: 'date',
    iat: 'date',
    jti: 'text',
  },
};

const REFERENCE: Fields = { type: 'serviceaccount.ref', fields: { name: 'text', uid: 'text' } };

const PRIVATE: Fields = {
  type: 'serviceaccount.privateClaims',
  fields: {
    'kubernetes.io': {
      type: 'serviceaccount.kubernetes',
      fields: {
        namespace: 'text',
        serviceaccount: REFERENCE,
        pod: REFERENCE,
        secret: REFERENCE,
        node: REFERENCE,
        warnafter: 'date',
      },
    },
  },
};

const ABOUT = 'kubernetes.io/serviceaccount/';
const LEGACY: Fields = {
  type: 'serviceaccount.legacyPrivateClaims',
  fields: {
    [`${ABOUT}service-account.name`]: 'text',
    [`${ABOUT}service-account.uid`]: 'text',
    [`${ABOUT}secret.name`]: 'text',
    [`${ABOUT}namespace`]: 'text',
  },
};

/** What is wrong with the form of claims, of which `text` is the JSON; '' where nothing is. */
export function claimsFault(claims: JsonObject, text: string): string {
  const own = claims['iss'] === LEGACY_ISSUER ? LEGACY : PRIVATE;
  return duplicateFault(claims, text) || faultOf(claims, PUBLIC) || faultOf(claims, own);
}

/** A key twice in one of the objects that are read. */
function duplicateFault(claims: JsonObject, text: string): string {
  for (const found of duplicateFields(text, claims)) {
    const path = /"(.*)"/.exec(found)?.[1] ?? '';
    const key = path.startsWith('kubernetes.io.') ? path.slice(path.lastIndexOf('.') + 1) : path;
    if (!key.includes('.') || Object.hasOwn(claims, key))
      return `json: duplicate key '${key}' in object`;
  }
  return '';
}

/** Dates and audiences end the reading; the first of other faults is told when all was read. */
function faultOf(value: JsonValue, shape: Shape): string {
  const found = { first: '' };
  const last = visit(value, shape, found);
  return last || found.first;
}

function visit(value: JsonValue, shape: Shape, found: { first: string }): string {
  if (shape === 'texts') return isTexts(value) ? '' : `${LIBRARY}: ${AUDIENCE}`;
  if (value === null) return '';
  if (shape === 'date') return isNumber(value) ? '' : `${LIBRARY}: ${DATE}`;
  const wanted = shape === 'text' ? 'string' : shape.type;
  const isFit = shape === 'text' ? typeof value === 'string' : isObject(value);
  if (!isFit)
    found.first ||= `json: cannot unmarshal ${kindOf(value)} into Go value of type ${wanted}`;
  if (shape === 'text' || !isObject(value)) return '';
  for (const [name, own] of Object.entries(value)) {
    const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
    const fault = field === undefined || own === undefined ? '' : visit(own, field, found);
    if (fault !== '') return fault;
  }
  return '';
}

const LIBRARY = 'go-jose/go-jose/jwt';
const AUDIENCE = 'expected string or array value to unmarshal to Audience';
const DATE = 'expected number value to unmarshal NumericDate';

function isTexts(value: JsonValue): boolean {
  if (typeof value === 'string') return true;
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : isNumber(value) ? 'number' : typeof value;
}

/** Why a token with these claims does not hold now, as far as time goes; '' where it does. */
export function timeFault(claims: JsonObject, nowMs: number): string {
  const { iss: issuer, exp: expires, nbf: starts, iat: issued } = claims;
  if (issuer === LEGACY_ISSUER) return '';
  const at = (date: number | bigint): number => Math.trunc(Number(date)) * 1000;
  if (isNumber(starts) && nowMs + LEEWAY_MS < at(starts)) return `${TOKEN} is not valid yet`;
  if (isNumber(expires) && nowMs - LEEWAY_MS > at(expires)) return `${TOKEN} has expired`;
  if (isNumber(issued) && nowMs + LEEWAY_MS < at(issued)) {
    return `${TOKEN} is issued in the future`;
  }
  return '';
}

const TOKEN = 'service account token';
