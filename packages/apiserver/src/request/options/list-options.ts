/** Options of lists and watches: reading them, and the rules that upstream checks them by. */
import { forbiddenField, notSupported, printed } from '@megaplane/machinery/fielderrors';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import { fieldSyntaxFault, parseFieldSelector } from '@megaplane/machinery/fieldselectors';
import { parseLabelSelector } from '@megaplane/machinery/selectors';
import {
  badRequest,
  failed,
  invalid,
  success,
  unclassified,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { decodeContinue, type ContinueToken } from './continue-token.ts';
import type { Served } from '../../storage/served.ts';
import { parseRevision, revisionFault, type Query } from '../query.ts';
import { shardOf } from './shard-selector.ts';

/** One list or watch, checked. `revision` is 0 for "unset" and for `"0"`; see `isUnset`. */
export interface ListOptions {
  readonly watch: boolean;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly shardSelector: string;
  readonly allowWatchBookmarks: boolean;
  readonly sendInitialEvents: boolean;
  readonly revision: number;
  /** No resourceVersion was given, as opposed to `0`. */
  readonly isUnset: boolean;
  readonly match: '' | 'Exact' | 'NotOlderThan';
  readonly timeoutSeconds: number | null;
  /** 0: no limit. */
  readonly limit: number;
  /**
   * A list leaves out what has changed since this revision and was there before; 0: nothing. Ours,
   * which upstream ignores as it does any parameter that it does not know: whether a server has
   * followed it stands in the metadata of the list.
   */
  readonly unchangedSince: number;
  readonly token: ContinueToken | null;
}

/**
 * Reads and checks the options in upstream's order: what each of them says, how they fit together,
 * the fields of the kind, the shard, then where to start. `watch` is decided by the caller (query
 * or name of the route), but the rules go by the query alone.
 */
export function readListOptions(
  query: Query,
  watch: boolean,
  served: Pick<Served, 'resource' | 'custom'> | null = null,
): Result<ListOptions> {
  const timeout = query.integer('timeoutSeconds');
  if (!timeout.ok) return timeout;
  const limit = query.integer('limit');
  if (!limit.ok) return limit;
  const misread = selectorFault(query);
  if (misread !== '') return failed(badRequest(misread));
  const asksWatch = query.flag('watch');
  const isOld = asksWatch && isOldWatch(query);
  const errors = asksWatch ? checkWatch(query, isOld) : checkList(query);
  if (errors.length > 0) {
    return failed(invalid({ group: 'meta.k8s.io', name: 'ListOptions' }, '', errors));
  }
  const fields = query.text('fieldSelector');
  if (fields !== '' && served !== null) {
    const { group, kind } = served.resource;
    const parsed = parseFieldSelector(fields, group, kind, served.custom?.facts.selectable);
    if ('error' in parsed) return failed(badRequest(parsed.error));
  }
  const shardSelector = query.text('shardSelector');
  const shard = shardOf(shardSelector);
  if (!shard.ok) return shard;
  const place = readPlace(query, watch);
  if (!place.ok) return place;
  const { revisionText, revision, token } = place.value;
  return success({
    watch,
    labelSelector: query.text('labelSelector'),
    fieldSelector: fields,
    shardSelector,
    allowWatchBookmarks: query.flag('allowWatchBookmarks'),
    sendInitialEvents: query.has('sendInitialEvents') ? query.flag('sendInitialEvents') : isOld,
    revision,
    isUnset: revisionText === '',
    match: query.text('resourceVersionMatch') as ListOptions['match'],
    timeoutSeconds: timeout.value,
    limit: Math.max(0, limit.value ?? 0),
    unchangedSince: watch ? 0 : (parseRevision(query.text('unchangedSince')) ?? 0),
    token,
  });
}

/** Where a list or watch starts: at a revision, or where an earlier page ended. */
function readPlace(
  query: Query,
  watch: boolean,
): Result<{ revisionText: string; revision: number; token: ContinueToken | null }> {
  const revisionText = query.text('resourceVersion');
  const continueText = watch ? '' : query.text('continue');
  if (continueText !== '') {
    const token = decodeContinue(continueText);
    if (typeof token === 'string') {
      return failed(badRequest(`invalid continue token: ${token}`));
    }
    if (revisionText !== '' && revisionText !== '0') {
      const text = 'specifying resource version is not allowed when using continue';
      return failed(badRequest(text));
    }
    return success({ revisionText, revision: 0, token });
  }
  const revision = parseRevision(revisionText);
  if (revision === null) return failed(badRevision(revisionText, watch));
  return success({ revisionText, revision, token: null });
}

/**
 * Upstream's storage answers 400 with a prefix, its cache, which is asked for objects and watches,
 * an unclassified 500 (as recorded).
 */
export function badRevision(text: string, isFromCache: boolean): Status {
  const fault = `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${revisionFault(text)}`;
  return isFromCache ? unclassified(fault) : badRequest(`invalid resource version: ${fault}`);
}

/** Upstream keeps no cache of events, and asks its storage for all of them. */
export function isUncached({ prefix }: Pick<Served, 'prefix'>): boolean {
  return prefix === '/registry/events/';
}

function selectorFault(query: Query): string {
  const labels = query.text('labelSelector');
  const parsed = labels === '' ? { value: null } : parseLabelSelector(labels);
  return 'error' in parsed ? parsed.error : fieldSyntaxFault(query.text('fieldSelector'));
}

/**
 * Watches from no revision or "0" always began with the state; upstream takes them for those that
 * ask for it, and for its end (`SetListOptionsDefaults`).
 */
function isOldWatch(query: Query): boolean {
  const revision = query.text('resourceVersion');
  const isAnew = revision === '' || revision === '0';
  return isAnew && !query.has('sendInitialEvents') && query.text('resourceVersionMatch') === '';
}

function checkList(query: Query): FieldError[] {
  const errors: FieldError[] = [];
  const match = query.text('resourceVersionMatch');
  const field = 'resourceVersionMatch';
  if (match !== '') {
    if (query.text('resourceVersion') === '') {
      const text = 'resourceVersionMatch is forbidden unless resourceVersion is provided';
      errors.push(forbiddenField(field, text));
    }
    if (query.text('continue') !== '') {
      const text = 'resourceVersionMatch is forbidden when continue is provided';
      errors.push(forbiddenField(field, text));
    }
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(notSupported(field, match, ['Exact', 'NotOlderThan', '']));
    } else if (match === 'Exact' && query.text('resourceVersion') === '0') {
      const text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
      errors.push(forbiddenField(field, text));
    }
  }
  if (query.has('sendInitialEvents')) {
    const text = 'sendInitialEvents is forbidden for list';
    errors.push(forbiddenField('sendInitialEvents', text));
  }
  return errors;
}

function checkWatch(query: Query, isOld: boolean): FieldError[] {
  const match = isOld ? 'NotOlderThan' : query.text('resourceVersionMatch');
  const field = 'resourceVersionMatch';
  const errors: FieldError[] = [];
  const isInitial = isOld || query.has('sendInitialEvents');
  if (isInitial && match !== 'NotOlderThan') {
    const text = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
    errors.push(forbiddenField(field, text));
  }
  if (match === '') return errors;
  if (!isInitial) {
    const text = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';
    errors.push(forbiddenField(field, text));
  }
  if (match !== 'NotOlderThan') {
    errors.push(notSupported(field, printed(JSON.stringify(match)), ['NotOlderThan']));
  }
  if (query.text('continue') !== '') {
    const text = 'resourceVersionMatch is forbidden when continue is provided';
    errors.push(forbiddenField(field, text));
  }
  return errors;
}
