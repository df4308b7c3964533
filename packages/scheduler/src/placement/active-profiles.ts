/** The profiles of a configuration, ready to decide by. */
import { fastProfileOf } from './topology/fast-profile.ts';
import type { ActiveProfile } from './placement-options.ts';
import { createProfile, type ProfileConfiguration } from '../framework/runtime/profile.ts';
import type { Tie } from '../collections/tie-walk.ts';
import type { UserPlugin } from '../framework/runtime/user-plugin.ts';
import { EXACT, type Compatibility } from '../framework/compatibility.ts';

export interface ProfileOptions {
  readonly profiles?: readonly ProfileConfiguration[];
  readonly plugins?: readonly UserPlugin[];
  /** 100 looks at all nodes; 0 adapts as upstream does. */
  readonly percentageOfNodesToScore?: number;
  readonly compatibility?: Compatibility;
  readonly tie?: Tie;
}

export function activeProfiles(options: ProfileOptions): ReadonlyMap<string, ActiveProfile> {
  const compatibility = options.compatibility ?? EXACT;
  const looksAtAll = (options.percentageOfNodesToScore ?? 100) === 100;
  const isExact = looksAtAll && options.tie !== 'upstream';
  const profiles = new Map<string, ActiveProfile>();
  for (const configuration of options.profiles ?? [{}]) {
    const profile = createProfile(configuration, compatibility, options.plugins);
    const fast = isExact ? fastProfileOf(profile, configuration, compatibility) : null;
    profiles.set(profile.schedulerName, { profile, fast });
  }
  return profiles;
}
