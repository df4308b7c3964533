/**
 * What the path and the query of a request say together (upstream's RequestInfo again): everybody
 * who decides about requests, counts them or answers them takes verb and name from here.
 */
import { pinnedTerm } from '@megaplane/machinery/fieldselectors';
import { pathSegmentErrors } from '@megaplane/machinery/names';
import type { Call } from './call.ts';

type Asked = Pick<Call, 'info' | 'query'>;

/** The verb of a request as authorizers see it: lists that watch are watches. */
export function effectiveVerb({ info, query }: Asked): string {
  return info.verb === 'list' && query.flag('watch') ? 'watch' : info.verb;
}

/**
 * The name that a request is about: of the path, or the one that the field selector of a list
 * names, whatever kind it lists. What no object may be called is no name.
 */
export function effectiveName({ info, query }: Asked): string {
  if (info.name !== '' || info.verb !== 'list') return info.name;
  const text = query.text('fieldSelector');
  const name = text === '' ? '' : (pinnedTerm(text, 'metadata.name') ?? '');
  return pathSegmentErrors(name).length === 0 ? name : '';
}
