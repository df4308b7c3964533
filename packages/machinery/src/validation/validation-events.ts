/**
 * Events, in the form of the core group and in that of events.k8s.io. The names of fields in texts
 * are the core ones in both, as upstream checks one internal form. /
 */

import { ownMember } from '@megaplane/base/members';
import { invalidValue, required } from '../meta/fielderrors.ts';
import { numberAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { qualifiedNameErrors } from '../meta/names.ts';
import { checkMetadata, SUBDOMAIN_NAME } from './field/validation-metadata.ts';
import { immutable, invalidEach, isSame, type Findings } from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

const NEW_GROUP = 'events.k8s.io/v1';

/** Core name of a field -> its name in events.k8s.io. */
const RENAMED: Readonly<Record<string, string>> = {
  involvedObject: 'regarding',
  message: 'note',
  source: 'deprecatedSource',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  reportingComponent: 'reportingController',
};

export const EVENT_RULES: RuleTable = {
  events: { skipsMetadata: true, create: checkEvent, update: updateEvent },
};

function isNew(event: JsonObject): boolean {
  return event['apiVersion'] === NEW_GROUP;
}

function nameIn(event: JsonObject, field: string): string {
  return isNew(event) ? (ownMember(RENAMED, field) ?? field) : field;
}

function checkEvent(found: Findings, event: JsonObject): void {
  checkReference(found, event);
  if (!isNew(event)) return;
  checkMetadata(found, objectAt(event, 'metadata') ?? {}, true, SUBDOMAIN_NAME, true);
  checkNewForm(found, event);
}

/** Where the event is, and what it is about, belong together. */
function checkReference(found: Findings, event: JsonObject): void {
  const involved = stringAt(event, nameIn(event, 'involvedObject'), 'namespace');
  const namespace = stringAt(event, 'metadata', 'namespace');
  const isTimed = typeof event['eventTime'] === 'string';
  const homes = isTimed ? ['default', 'kube-system'] : ['', 'default'];
  const isMatch = involved === '' ? homes.includes(namespace) : isTimed || involved === namespace;
  if (!isMatch) {
    const text = 'does not match event.namespace';
    found.push(invalidValue('involvedObject.namespace', involved, text));
  }
  if (isTimed) checkTimed(found, event);
}

function checkTimed(found: Findings, event: JsonObject): void {
  const field = isNew(event) ? 'reportingController' : 'reportingComponent';
  const reporter = stringAt(event, field);
  if (reporter === '') found.push(required(field));
  invalidEach(found, field, reporter, qualifiedNameErrors(reporter));
  const limits: [name: string, limit: number, isRequired: boolean][] = [
    ['reportingInstance', 128, true],
    ['action', 128, true],
    ['reason', 128, true],
    ['message', 1024, false],
  ];
  for (const [name, limit, isRequired] of limits) {
    const value = stringAt(event, nameIn(event, name));
    if (isRequired && value === '') found.push(required(name));
    if (Buffer.byteLength(value) <= limit) continue;
    found.push(invalidValue(name, '', `can have at most ${limit} characters`));
  }
}

function checkNewForm(found: Findings, event: JsonObject): void {
  checkSeries(found, event);
  if (typeof event['eventTime'] !== 'string') found.push(required('eventTime'));
  const type = stringAt(event, 'type');
  if (type !== 'Normal' && type !== 'Warning') {
    found.push(invalidValue('type', '', `has invalid value: ${type}`));
  }
  const unset = 'needs to be unset';
  for (const field of ['firstTimestamp', 'lastTimestamp']) {
    if (typeof ownMember(event, nameIn(event, field)) !== 'string') continue;
    found.push(invalidValue(field, '', unset));
  }
  if (numberAt(event, 'deprecatedCount') !== 0) found.push(invalidValue('count', '', unset));
  const source = objectAt(event, 'deprecatedSource') ?? {};
  if (Object.keys(source).length > 0) found.push(invalidValue('source', '', unset));
}

function checkSeries(found: Findings, event: JsonObject): void {
  const series = objectAt(event, 'series');
  if (series === undefined) return;
  if (numberAt(series, 'count') < 2) {
    found.push(invalidValue('series.count', '', 'should be at least 2'));
  }
  if (typeof series['lastObservedTime'] !== 'string') {
    found.push(required('series.lastObservedTime'));
  }
}

const FROZEN = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  // upstream looks twice
  'reason',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingController',
  'reportingInstance',
];

const FROZEN_TYPES: Readonly<Record<string, string>> = {
  involvedObject: 'core.v1.ObjectReference',
  related: 'core.v1.ObjectReference',
  source: 'core.v1.EventSource',
};
const ZEROS: Readonly<Record<string, JsonValue>> = {
  count: 0,
  reason: '',
  message: '',
  type: '',
  action: '',
  reportingController: '',
  reportingInstance: '',
};

/** Events of the core group may change freely; of the newer group only the series may. */
function updateEvent(found: Findings, next: JsonObject, previous: JsonObject): void {
  checkReference(found, next);
  if (!isNew(next)) return;
  if (!isSame(next['series'], previous['series'])) checkSeries(found, next);
  for (const field of FROZEN) {
    const [after, before] = [
      ownMember(next, nameIn(next, field)),
      ownMember(previous, nameIn(previous, field)),
    ];
    const type = FROZEN_TYPES[field];
    // Go has no absent structs, texts and counts, but for what it points to
    const zero = type === undefined ? ZEROS[field] : field === 'related' ? undefined : {};
    immutable(found, field, after ?? zero, before ?? zero, type);
  }
}
