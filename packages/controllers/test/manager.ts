/** A manager with the controllers that a test names, over an API in memory. */
import assert from 'node:assert/strict';
import { Random } from '@megaplane/base/random';
import type { Client } from '@megaplane/client/client';
import { Manager, type ManagerOptions } from '../src/manager/manager.ts';
import { chosenControllers, type ControllersOptions } from '../src/framework/options.ts';

export function startManager(
  client: Client,
  names: readonly string[],
  more: Partial<ControllersOptions> = {},
  given: Partial<Pick<ManagerOptions, 'authorities'>> = {},
): Manager {
  const chosen = chosenControllers(names);
  assert(typeof chosen !== 'string');
  const log = (level: string, text: string): void => assert.notEqual(level, 'error', text);
  const manager = new Manager({
    client,
    chosen,
    options: { kubeconfig: '', log, ...more },
    rootCa: '',
    random: new Random(1),
    ...given,
    monotonicMs: () => client.timers.nowMs(),
    log,
  });
  manager.start();
  return manager;
}
