/**
 * Plugins of users: what a module hands to the scheduler (`--plugin file`). The plugin itself
 * implements `Plugin`; `points` says where it takes part, so that a configuration can enable it.
 */
import type { ExtensionPoint } from './configuration/configuration-schema.ts';
import type { Plugin } from './plugin.ts';

export interface UserPlugin {
  /** As configurations name it. */
  readonly name: string;
  readonly points: readonly ExtensionPoint[];
  /** `args`: of the profile's pluginConfig, as they stand there; throws with what is wrong. */
  create(args: object): Plugin;
}
