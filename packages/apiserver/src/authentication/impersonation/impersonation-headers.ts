/** Whom the header fields of a request ask to act as. */
import { addToMember } from '@megaplane/base/members';
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import { headerText } from '../../request/header-text.ts';
import type { FieldList } from '@megaplane/wire/fields';

const PREFIX = 'impersonate-';
const EXTRA_PREFIX = 'impersonate-extra-';

/** The user that is wanted, as the fields say it: nothing added, nothing judged. */
export interface Wanted {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/**
 * Reads the fields; null where nobody is named. Of several users or uids the first counts, as
 * Go's `Header.Get` has it. What belongs to a user without naming one is a 400.
 */
export function readWanted(fields: FieldList): Result<Wanted | null> {
  let isAsked = false;
  for (let at = 0; at < fields.length && !isAsked; at += 2) {
    isAsked = (fields[at] ?? '').startsWith(PREFIX);
  }
  if (!isAsked) return success(null);
  const wanted = { user: '', uid: '', groups: [] as string[], extra: {} };
  for (let at = fields.length - 2; at >= 0; at -= 2) {
    const value = headerText(fields[at + 1] ?? '');
    if (fields[at] === 'impersonate-user') wanted.user = value;
    if (fields[at] === 'impersonate-uid') wanted.uid = value;
  }
  const extra: Record<string, string[]> = wanted.extra;
  for (let at = 0; at < fields.length; at += 2) {
    const [name = '', bytes = ''] = fields.slice(at, at + 2);
    if (!name.startsWith(PREFIX)) continue;
    const value = headerText(bytes);
    if (name === 'impersonate-group') wanted.groups.push(value);
    if (name.startsWith(EXTRA_PREFIX)) {
      addToMember(extra, unescapeKey(name.slice(EXTRA_PREFIX.length)), value);
    }
  }
  if (wanted.user !== '') return success(wanted);
  const { uid, groups } = wanted;
  if (uid === '' && groups.length === 0 && Object.keys(extra).length === 0) return success(null);
  return failed(badRequest(`requested ${goUser(wanted)} without impersonating a user name`));
}

/** A key that cannot be unescaped is taken as it stands. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch (error) {
    if (error instanceof URIError) return key;
    throw error;
  }
}

/** A user without a name, as Go prints its struct. */
function goUser({ uid, groups, extra }: Wanted): string {
  const list = (values: readonly string[]): string =>
    `[]string{${values.map((one) => JSON.stringify(one)).join(', ')}}`;
  const pairs = Object.entries(extra)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, values]) => `${JSON.stringify(key)}:${list(values)}`);
  const names = groups.length === 0 ? '[]string(nil)' : list(groups);
  const more =
    pairs.length === 0 ? 'map[string][]string(nil)' : `map[string][]string{${pairs.join(', ')}}`;
  return `&user.DefaultInfo{Name:"", UID:${JSON.stringify(uid)}, Groups:${names}, Extra:${more}}`;
}
