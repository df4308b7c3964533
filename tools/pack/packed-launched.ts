/** In place of `packages/cli/src/service/launched.ts`: the bundled program is a pack by itself. */
import { ownCommand } from './packed-self.ts';

export const PACK_FILES: readonly string[] = [];

export function writePackFiles(): void {}

export function newestSource(): number {
  return 0;
}

export function launchedWords(
  _place: string,
  flags: readonly string[],
  command: string,
): readonly string[] {
  const own = ownCommand(flags, [command], {});
  const settings = Object.entries(own.env).map(([name, value]) => `${name}=${value}`);
  return settings.length === 0 ? own.command : ['/usr/bin/env', ...settings, ...own.command];
}
