/** AlwaysAdmit and AlwaysDeny: both have no use beyond tests, and are off unless enabled. */
import { refuse } from '../../registry/rest/refusal.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit', repeats: () => true };

const WHY = 'admission control is denying all modifications';

export const alwaysDeny: AdmissionPlugin = {
  name: 'AlwaysDeny',
  mutate: (write) => refuse(write, WHY),
  validate: (write) => refuse(write, WHY),
};
