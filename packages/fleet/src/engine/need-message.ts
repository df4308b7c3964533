/** What a cluster needs of one profile, as its rollups say it. */
import type { ProfileFields } from './profile.ts';

export interface NeedMessage {
  readonly profile: ProfileFields;
  /** Texts of quantities by resource. */
  readonly aggregate: Readonly<Record<string, string>>;
  readonly minUnit: Readonly<Record<string, string>>;
  readonly group: string;
}
