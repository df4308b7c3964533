/**
 * How the bundled program starts itself: in place of `packages/cli/src/service/self.ts`. Bundled as
 * files it is run by a runtime; as a single executable it is the runtime.
 */
import { join } from 'node:path';
import { isSea } from 'node:sea';
import type { OwnCommand } from '../../packages/cli/src/service/self.ts';

/** Put there by the bundler. */
declare const MEGAPLANE_VERSION: string;

/** Engine flags that the variable of Node does not take; see `engine-flags.ts`. */
const MORE_FLAGS = 'MEGAPLANE_ENGINE_FLAGS';
const IN_VARIABLE = /^--max-(?:old-space|semi-space)-size=/;

export function ownVersion(): string {
  return MEGAPLANE_VERSION;
}

export function ownCommand(
  flags: readonly string[],
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): OwnCommand {
  if (!isSea()) {
    const entry = join(import.meta.dirname, 'main.cjs');
    return { command: [process.execPath, ...flags, entry, ...args], env };
  }
  const ofNode = flags.filter((flag) => IN_VARIABLE.test(flag));
  const others = flags.filter((flag) => !IN_VARIABLE.test(flag));
  const added: NodeJS.ProcessEnv = {};
  if (ofNode.length > 0) added['NODE_OPTIONS'] = ofNode.join(' ');
  if (others.length > 0) added[MORE_FLAGS] = others.join(' ');
  return { command: [process.execPath, ...args], env: { ...env, ...added } };
}
