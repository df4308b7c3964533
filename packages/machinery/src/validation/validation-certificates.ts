/** Certificate signing requests (`certificates.k8s.io`). */

import { X509Certificate } from 'node:crypto';
import { derAt } from '@megaplane/base/der-reader';
import { readRequest } from '../meta/certificate-request.ts';
import { pemBlocks } from '../meta/pem.ts';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
} from '../meta/fielderrors.ts';
import { equals, listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { SEGMENT_NAME } from './field/validation-metadata.ts';
import { eachObject, type Findings } from './field/validation-rules.ts';
import { checkSignerName } from './field/validation-signers.ts';
import type { RuleTable } from './field/rule-table.ts';

const USAGES = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];
const SECONDS_MIN = 600;
const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown';
/** Conditions that are true where they are, and stay. */
const LASTING = ['Approved', 'Denied', 'Failed'];
const CERTIFICATE = 'CERTIFICATE';

export const CERTIFICATE_RULES: RuleTable = {
  'certificatesigningrequests.certificates.k8s.io': {
    name: SEGMENT_NAME,
    create: checkRequest,
    update: (found, next, previous) => {
      checkStatus(found, next);
      keepStatus(found, next, previous, '');
    },
    subresources: {
      status: (found, next, previous) => {
        checkStatus(found, next);
        keepStatus(found, next, previous, 'status');
      },
      approval: (found, next, previous) => {
        checkStatus(found, next);
        keepStatus(found, next, previous, 'approval');
      },
    },
  },
};

function checkRequest(found: Findings, request: JsonObject): void {
  const spec = objectAt(request, 'spec') ?? {};
  const encoded = stringAt(spec, 'request');
  const bytes = Buffer.from(encoded, 'base64');
  const parsed = readRequest(bytes.toString('latin1'));
  if (typeof parsed === 'string') {
    const isAbsent = spec['request'] === undefined || spec['request'] === null;
    const shown = isAbsent ? null : printed(JSON.stringify(encoded));
    found.push(invalidValue('spec.request', shown, parsed));
  }
  checkUsages(found, listAt(spec, 'usages'));
  const signer = stringAt(spec, 'signerName');
  if (signer === LEGACY_SIGNER) {
    const text = 'the legacy signerName is not allowed via this API version';
    found.push(invalidValue('spec.signerName', signer, text));
  } else checkSignerName(found, 'spec.signerName', signer);
  const seconds = spec['expirationSeconds'];
  if (typeof seconds === 'number' && seconds < SECONDS_MIN) {
    const text = 'may not specify a duration less than 600 seconds (10 minutes)';
    found.push(invalidValue('spec.expirationSeconds', seconds, text));
  }
  checkStatus(found, request);
}

function checkUsages(found: Findings, usages: readonly JsonValue[]): void {
  if (usages.length === 0) found.push(required('spec.usages'));
  for (const [index, usage] of usages.entries()) {
    if (typeof usage === 'string' && USAGES.includes(usage)) continue;
    found.push(notSupported(`spec.usages[${index}]`, usage, USAGES));
  }
  for (const [index, usage] of usages.entries()) {
    if (usages.indexOf(usage) < index) found.push(duplicate(`spec.usages[${index}]`, usage));
  }
}

function checkStatus(found: Findings, request: JsonObject): void {
  const path = 'status.conditions';
  const seen = new Set<string>();
  eachObject(listAt(request, 'status', 'conditions'), path, (condition, at) => {
    const [type, status] = [stringAt(condition, 'type'), stringAt(condition, 'status')];
    if (type === '') found.push(required(`${at}.type`));
    const allowed = LASTING.includes(type) ? ['True'] : ['False', 'True', 'Unknown'];
    if (status === '') found.push(required(`${at}.status`));
    else if (!allowed.includes(status)) found.push(notSupported(`${at}.status`, status, allowed));
    const other = type === 'Approved' ? 'Denied' : type === 'Denied' ? 'Approved' : '';
    if (other !== '' && seen.has(other)) {
      const text = 'Approved and Denied conditions are mutually exclusive';
      found.push(invalidValue(path, type, text));
    }
    if (seen.has(type)) found.push(duplicate(`${at}.type`, type));
    seen.add(type);
  });
  const wrong = certificateFault(stringAt(request, 'status', 'certificate'));
  if (wrong === '') return;
  found.push(invalidValue('status.certificate', '<certificate data>', wrong));
}

/** One certificate after another. */
function isCertificates(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length;) {
    const value = derAt(bytes, at, bytes.length);
    if (value === undefined) return false;
    try {
      void new X509Certificate(bytes.subarray(at, value.end));
    } catch {
      return false;
    }
    at = value.end;
  }
  return true;
}

/** What is wrong with the certificates of an answer, or ''. */
function certificateFault(encoded: string): string {
  if (encoded === '') return '';
  const pem = Buffer.from(encoded, 'base64').toString('latin1');
  const blocks = pemBlocks(pem);
  for (const { type, hasHeaders, bytes } of blocks) {
    if (type !== CERTIFICATE) {
      return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(type)}`;
    }
    if (hasHeaders) return 'no PEM block headers are permitted';
    if (bytes.length === 0) return 'found CERTIFICATE PEM block containing 0 certificates';
    if (!isCertificates(bytes)) return 'x509: malformed certificate';
  }
  return blocks.length === 0 ? 'must contain at least one CERTIFICATE PEM block' : '';
}

/** Approval is set by its subresource, the certificate by that of the status; both stay. */
function keepStatus(
  found: Findings,
  next: JsonObject,
  previous: JsonObject,
  subresource: string,
): void {
  const path = 'status.conditions';
  const ofType = (request: JsonObject, type: string): readonly JsonValue[] =>
    listAt(request, 'status', 'conditions').filter((one) => stringAt(one, 'type') === type);
  for (const type of LASTING) {
    if (ofType(next, type).length >= ofType(previous, type).length) continue;
    found.push(forbiddenField(path, `updates may not remove a condition of type "${type}"`));
  }
  for (const type of subresource === 'approval' ? [] : ['Approved', 'Denied']) {
    const [after, before] = [ofType(next, type), ofType(previous, type)];
    if (after.length > before.length) {
      found.push(forbiddenField(path, `updates may not add a condition of type "${type}"`));
    } else if (after.length === before.length && !equals([...after], [...before])) {
      found.push(forbiddenField(path, `updates may not modify a condition of type "${type}"`));
    }
  }
  const [after, before] = [next, previous].map((one) => stringAt(one, 'status', 'certificate'));
  if (after === before) return;
  if (subresource !== 'status') {
    found.push(forbiddenField('status.certificate', 'updates may not set certificate content'));
  } else if (before !== '') {
    const text = 'updates may not modify existing certificate content';
    found.push(forbiddenField('status.certificate', text));
  }
}
