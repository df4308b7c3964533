/** Profiles whose plugins are all prepared before they filter and score. */
import { ownMember } from '@megaplane/base/members';
import type { Profile } from './profile.ts';
import { PLUGIN_POINTS } from './registry.ts';

/** Whether all that filters and scores is prepared, too. */
export function isPrepared({ filter, weights, prepares, preparesScore }: Profile): boolean {
  const lacks = (name: string, point: 'preFilter' | 'preScore', on: ReadonlySet<string>): boolean =>
    ownMember(PLUGIN_POINTS, name)?.includes(point) === true && !on.has(name);
  const filters = filter.every(({ name }) => !lacks(name, 'preFilter', prepares));
  return filters && weights.keys().every((name) => !lacks(name, 'preScore', preparesScore));
}
