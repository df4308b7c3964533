/** Which Kubernetes this server stands for. */
import type { JsonObject } from '@megaplane/machinery/json-value';

export const GIT_VERSION = 'v1.36.1';
/** As OpenAPI documents give it. */
export const MINOR_VERSION = '1.36';

/** Programs of this release and later can be upgraded to what is here. */
export const MIN_COMPATIBLE = '1.35';

/** The answer of `/version`: clients choose what they ask for by it. */
export const VERSION: JsonObject = {
  major: '1',
  minor: '36',
  emulationMajor: '1',
  emulationMinor: '36',
  minCompatibilityMajor: MIN_COMPATIBLE.split('.')[0] ?? '',
  minCompatibilityMinor: MIN_COMPATIBLE.split('.')[1] ?? '',
  gitVersion: GIT_VERSION,
  gitCommit: 'megaplane',
  gitTreeState: 'clean',
  buildDate: '2026-11-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'megaplane',
  platform: 'linux/amd64',
};
