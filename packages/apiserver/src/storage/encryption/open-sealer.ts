// shell: reads the configuration of encryption at rest, and again when it changes
import { everyMs } from '@megaplane/base/deferred';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { readConfiguration, unknownResources, type Rule } from './encryption-config.ts';
import { ValueSealer } from './value-sealer.ts';

/** A changed file is taken in so much later at most. */
const RELOAD_MS = 5000;
const FLAG = '--encryption-provider-config';

export interface OpenSealer {
  readonly sealer: ValueSealer;
  readonly stop: () => void;
}

/**
 * Throws an Error that names the flag where the file cannot be used. With `reloads` the file is
 * looked at again and again; one that cannot be used is reported and changes nothing.
 */
export function openSealer(
  file: string,
  reloads: boolean,
  log: (level: 'error' | 'warn' | 'info', message: string) => void,
  periodMs: number = RELOAD_MS,
): OpenSealer {
  let text = readText(file);
  const rules = rulesOf(file, text);
  const sealer = new ValueSealer(rules);
  for (const name of unknownResources(rules)) {
    log('info', `${FLAG}: ${name} is no built-in resource; it is taken for a custom one`);
  }
  if (!reloads) return { sealer, stop: () => {} };
  const timer = everyMs(periodMs, () => {
    try {
      const now = readText(file);
      if (now === text) return;
      text = now;
      sealer.replace(rulesOf(file, now));
      log('info', `${FLAG}: ${file} was loaded again`);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log('error', `${why}; the keys of before stay in use`);
    }
  });
  timer.unref();
  return { sealer, stop: () => clearInterval(timer) };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${FLAG}: cannot be read (${why})`, { cause: error });
  }
}

function rulesOf(file: string, text: string): Rule[] {
  try {
    return readConfiguration(parse(text) as JsonValue);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${FLAG}: ${file}: ${why}`, { cause: error });
  }
}
