/**
 * Field selectors: `path=value,path!=value` over the few fields that each kind offers.
 *
 * A field that is absent counts as the empty string, so that `spec.nodeName=` finds unbound pods.
 */
import type { JsonValue } from '../json/json-value.ts';
import { isNumber, isObject } from '../json/json-value.ts';
import { listAt, numberAt, stringAt, valueAt } from '../json/json.ts';
import { quoted } from '../json/quoting.ts';
import { SELECTOR_CHARS_MAX, selectorExcess, type Parsed } from './selectors.ts';

/** One condition; `field` is the name that the kind knows it by, aliases resolved. */
export interface FieldRequirement {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

/** All conditions must hold. */
export interface FieldSelector {
  readonly requirements: readonly FieldRequirement[];
}

export const EVERY_FIELD: FieldSelector = { requirements: [] };

const NAMED = ['metadata.name', 'metadata.namespace'];

const EVENT_REFERENCE = [
  'kind',
  'namespace',
  'name',
  'uid',
  'apiVersion',
  'resourceVersion',
  'fieldPath',
];

interface FieldTable {
  /** Field as written -> field as evaluated. */
  readonly fields: ReadonlyMap<string, string>;
  /** What is said of another field. */
  readonly complaint: (field: string) => string;
}

function table(
  fields: readonly string[],
  aliases: readonly (readonly [string, string])[] = [],
  complaint: FieldTable['complaint'] = (field) => `field label not supported: ${field}`,
): FieldTable {
  const own = fields.map((field) => [field, field] as const);
  return { fields: new Map([...own, ...aliases]), complaint };
}

/** Kinds that select by more than their name, by `group/Kind`; upstream has one table per kind. */
const TABLES: ReadonlyMap<string, FieldTable> = new Map([
  [
    '/Pod',
    table(
      [
        ...NAMED,
        'spec.nodeName',
        'spec.restartPolicy',
        'spec.schedulerName',
        'spec.serviceAccountName',
        'spec.hostNetwork',
        'status.phase',
        'status.podIP',
        'status.podIPs',
        'status.nominatedNodeName',
      ],
      [['spec.host', 'spec.nodeName']],
    ),
  ],
  ['/Node', table(['metadata.name', 'spec.unschedulable'])],
  [
    '/Event',
    table([
      ...NAMED,
      ...EVENT_REFERENCE.map((field) => `involvedObject.${field}`),
      'reason',
      'reportingComponent',
      'source',
      'type',
    ]),
  ],
  [
    'events.k8s.io/Event',
    table(
      [...NAMED, 'reason', 'type'],
      [
        ...EVENT_REFERENCE.map(
          (field) => [`regarding.${field}`, `involvedObject.${field}`] as const,
        ),
        ['reportingController', 'reportingComponent'],
      ],
    ),
  ],
  ['/Namespace', table(['metadata.name', 'status.phase'])],
  ['/Secret', table([...NAMED, 'type'])],
  ['/Service', table([...NAMED, 'spec.clusterIP', 'spec.type'])],
  ['/ReplicationController', table([...NAMED, 'status.replicas'])],
  [
    'batch/Job',
    table(
      [...NAMED, 'status.successful'],
      [],
      (field) => `field label ${quoted(field)} not supported for Job`,
    ),
  ],
  ['certificates.k8s.io/CertificateSigningRequest', table(['metadata.name', 'spec.signerName'])],
  ['certificates.k8s.io/ClusterTrustBundle', table(['metadata.name', 'spec.signerName'])],
  [
    'certificates.k8s.io/PodCertificateRequest',
    table(['metadata.name', 'spec.signerName', 'spec.podName', 'spec.nodeName']),
  ],
  [
    'resource.k8s.io/ResourceSlice',
    table(
      ['metadata.name', 'spec.nodeName', 'spec.driver'],
      [],
      (field) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${field}`,
    ),
  ],
]);

const METADATA_ONLY = table(NAMED);

/** What a kind offers for selection, for discovery of mistakes in tests and documentation. */
export function selectableFields(group: string, kind: string): readonly string[] {
  return [...(TABLES.get(`${group}/${kind}`) ?? METADATA_ONLY).fields.keys()];
}

/** One term as it was written: which fields there are, the kind says. */
export interface FieldTerm {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

function readTerms(text: string): Parsed<FieldTerm[]> {
  const written = text.length > SELECTOR_CHARS_MAX ? [] : splitTerms(text);
  const excess = selectorExcess(text.length, written.length);
  if (excess !== '') return { error: excess };
  const terms: FieldTerm[] = [];
  for (const term of written.sort()) {
    if (term === '') continue;
    const match = /^([^=!]|!(?!=))*?(?=(!=|==|=))/s.exec(term);
    if (match === null) {
      return { error: `invalid selector: '${text}'; can't understand '${term}'` };
    }
    const operator = match[2] ?? '=';
    const value = unescaped(term.slice(match[0].length + operator.length));
    if ('error' in value) return value;
    // neither a field nor a value: upstream finds that everything fits
    if (match[0] === '' && value.value === '') continue;
    terms.push({ field: match[0], isEqual: operator !== '!=', value: value.value });
  }
  return { value: terms };
}

/** The terms of a `fieldSelector` whatever it is about; none where it cannot be read. */
export function fieldTerms(text: string): readonly FieldTerm[] {
  const terms = readTerms(text);
  return 'error' in terms ? [] : terms.value;
}

/** What is wrong with a `fieldSelector` whatever it is about; '' where nothing is. */
export function fieldSyntaxFault(text: string): string {
  const terms = readTerms(text);
  return 'error' in terms ? terms.error : '';
}

/**
 * The value that a `fieldSelector` asks a field for, whatever kind it is about: neither are other
 * fields looked at nor aliases known. Undefined where it cannot be read, too.
 */
export function pinnedTerm(text: string, field: string): string | undefined {
  const terms = readTerms(text);
  if ('error' in terms) return undefined;
  return terms.value.find((term) => term.field === field && term.isEqual)?.value;
}

/**
 * Parses a `fieldSelector` parameter for one kind. `custom` holds the extra JSON paths
 * (`spec.color`) of a custom resource's selectableFields. Errors are the texts of a 400.
 */
export function parseFieldSelector(
  text: string,
  group: string,
  kind: string,
  custom?: readonly string[],
): Parsed<FieldSelector> {
  const terms = readTerms(text);
  if ('error' in terms) return terms;
  const requirements: FieldRequirement[] = [];
  for (const { field: name, isEqual, value } of terms.value) {
    const field = resolveField(name, group, kind, custom);
    if ('error' in field) return field;
    requirements.push({ field: field.value, isEqual, value });
  }
  return { value: { requirements } };
}

/** Splits at commas that no backslash protects; the backslashes stay. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function unescaped(text: string): Parsed<string> {
  let value = '';
  let isEscaping = false;
  for (const character of text) {
    if (isEscaping) {
      if (!'\\,='.includes(character)) {
        return { error: `invalid field selector: invalid escape sequence: \\${character}` };
      }
      value += character;
      isEscaping = false;
    } else if (character === '\\') {
      isEscaping = true;
    } else if (character === ',' || character === '=') {
      const code = character.charCodeAt(0);
      return { error: `invalid field selector: unescaped character in value: ${code}` };
    } else {
      value += character;
    }
  }
  if (isEscaping) return { error: 'invalid field selector: invalid escape sequence: \\' };
  return { value };
}

/** The value with what a selector must escape escaped. */
export function escapeFieldValue(value: string): string {
  return value.replaceAll(/[\\,=]/g, '\\$&');
}

function resolveField(
  field: string,
  group: string,
  kind: string,
  custom: readonly string[] | undefined,
): Parsed<string> {
  const own = TABLES.get(`${group}/${kind}`);
  const found = (own ?? METADATA_ONLY).fields.get(field);
  if (found !== undefined) return { value: found };
  if (custom?.includes(field) === true) return { value: field };
  if (own !== undefined) return { error: own.complaint(field) };
  if (custom !== undefined) return { error: `field label not supported: ${field}` };
  const known = NAMED.map(quoted).join(', ');
  return { error: `${quoted(field)} is not a known field selector: only ${known}` };
}

/** True where the object satisfies every condition. */
export function matchesFields(selector: FieldSelector, object: JsonValue): boolean {
  return selector.requirements.every(
    ({ field, isEqual, value }) => (fieldValue(object, field) === value) === isEqual,
  );
}

/** The text that a selectable field of an object has; booleans and numbers as text. */
export function fieldValue(object: JsonValue, field: string): string {
  const derived = DERIVED.get(field);
  if (derived !== undefined) return derived(object);
  const value = valueAt(object, ...field.split('.'));
  if (typeof value === 'string') return value;
  return isNumber(value) || typeof value === 'boolean' ? String(value) : '';
}

/** Fields that are not simply the text at their path, or that have a default when absent. */
const DERIVED: ReadonlyMap<string, (object: JsonValue) => string> = new Map([
  ['spec.unschedulable', (o: JsonValue) => String(valueAt(o, 'spec', 'unschedulable') === true)],
  ['spec.hostNetwork', (o: JsonValue) => String(valueAt(o, 'spec', 'hostNetwork') === true)],
  ['status.replicas', (o: JsonValue) => String(numberAt(o, 'status', 'replicas'))],
  ['status.successful', (o: JsonValue) => String(numberAt(o, 'status', 'succeeded'))],
  // Upstream accepts status.podIPs but never fills it: it equals nothing but the empty string.
  ['status.podIPs', () => ''],
  [
    'status.podIP',
    (o: JsonValue) =>
      stringAt(listAt(o, 'status', 'podIPs')[0], 'ip') || stringAt(o, 'status', 'podIP'),
  ],
  ['source', (o: JsonValue) => eventText(o, 'source', 'component') || eventReporter(o)],
  ['reportingComponent', eventReporter],
  ...EVENT_REFERENCE.map(
    (name) =>
      [
        `involvedObject.${name}`,
        (o: JsonValue) => stringAt(o, 'involvedObject', name) || stringAt(o, 'regarding', name),
      ] as const,
  ),
]);

function eventText(object: JsonValue, current: string, member: string): string {
  const deprecated = isObject(object) ? object['deprecatedSource'] : undefined;
  return stringAt(object, current, member) || stringAt(deprecated, member);
}

function eventReporter(object: JsonValue): string {
  return stringAt(object, 'reportingComponent') || stringAt(object, 'reportingController');
}

/** The text form, terms in the order of their fields. */
export function fieldSelectorText(selector: FieldSelector): string {
  return selector.requirements
    .map(({ field, isEqual, value }) => `${field}${isEqual ? '=' : '!='}${escapeFieldValue(value)}`)
    .join(',');
}

/** The value that a selector pins a field to, if it does: lets a list go straight to an index. */
export function pinnedField(selector: FieldSelector, field: string): string | undefined {
  return selector.requirements.find((one) => one.field === field && one.isEqual)?.value;
}
