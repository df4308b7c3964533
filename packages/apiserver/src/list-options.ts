/** Options of lists and watches: reading them, and the rules that upstream checks them by. */
import { forbiddenField, notSupported, printed } from '@megaplane/machinery/fielderrors';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import {
  badRequest,
  failed,
  invalid,
  success,
  unclassified,
  type Result,
} from '@megaplane/machinery/status';
import { decodeContinue, type ContinueToken } from './continue-token.ts';
import { parseRevision, revisionFault, type Query } from './query.ts';

/** One list or watch, checked. `revision` is 0 for "unset" and for `"0"`; see `isUnset`. */
export interface ListOptions {
  readonly watch: boolean;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly shardSelector: string;
  readonly allowWatchBookmarks: boolean;
  readonly sendInitialEvents: boolean | null;
  readonly revision: number;
  /** No resourceVersion was given, as opposed to `0`. */
  readonly isUnset: boolean;
  readonly match: '' | 'Exact' | 'NotOlderThan';
  readonly timeoutSeconds: number | null;
  /** 0: no limit. */
  readonly limit: number;
  readonly token: ContinueToken | null;
}

/** Reads and checks the options; `watch` is decided by the caller (query or name of the route). */
export function readListOptions(query: Query, watch: boolean): Result<ListOptions> {
  const limit = query.integer('limit');
  if (!limit.ok) return limit;
  const timeout = query.integer('timeoutSeconds');
  if (!timeout.ok) return timeout;
  const errors = checkOptions(query, watch);
  if (errors.length > 0) {
    return failed(invalid({ group: 'meta.k8s.io', name: 'ListOptions' }, '', errors));
  }
  const place = readPlace(query, watch);
  if (!place.ok) return place;
  const { revisionText, revision, token } = place.value;
  return success({
    watch,
    labelSelector: query.text('labelSelector'),
    fieldSelector: query.text('fieldSelector'),
    shardSelector: query.text('shardSelector'),
    allowWatchBookmarks: query.flag('allowWatchBookmarks'),
    sendInitialEvents: query.has('sendInitialEvents') ? query.flag('sendInitialEvents') : null,
    revision,
    isUnset: revisionText === '',
    match: query.text('resourceVersionMatch') as ListOptions['match'],
    timeoutSeconds: timeout.value,
    limit: Math.max(0, limit.value ?? 0),
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

/** A list answers 400 with a prefix, a watch an unclassified 500 (as recorded). */
function badRevision(text: string, watch: boolean): ReturnType<typeof badRequest> {
  const fault = `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${revisionFault(text)}`;
  return watch ? unclassified(fault) : badRequest(`invalid resource version: ${fault}`);
}

function checkOptions(query: Query, watch: boolean): FieldError[] {
  return watch ? checkWatch(query) : checkList(query);
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

function checkWatch(query: Query): FieldError[] {
  const match = query.text('resourceVersionMatch');
  const field = 'resourceVersionMatch';
  const errors: FieldError[] = [];
  const isInitial = query.has('sendInitialEvents');
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
