// shell: reads files and standard input
/** What the scheduler's subcommands read: configurations and scenarios. */
import { readFileSync } from 'node:fs';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseConfiguration } from '@megaplane/scheduler/configuration';
import type { SchedulerConfiguration } from '@megaplane/scheduler/configuration';
import { explainScenario } from '@megaplane/scheduler/explain';
import type { Scenario } from '@megaplane/scheduler/explain';
import { parse } from 'yaml';

/** A KubeSchedulerConfiguration; throws with every fault of it, a line each. */
export function readConfiguration(file: string): SchedulerConfiguration {
  const value: JsonValue = parse(readFileSync(file, 'utf8'));
  const parsed = parseConfiguration(value);
  if (!parsed.ok) throw new Error(`--config ${file}:\n  ${parsed.errors.join('\n  ')}`);
  return parsed.configuration;
}

/** Prints the answer to a scenario as one line of JSON. Returns the exit code. */
export function explainFile(file: string | undefined): number {
  const text = readFileSync(file ?? 0, 'utf8');
  const scenario: unknown = JSON.parse(text);
  if (typeof scenario !== 'object' || scenario === null || !('steps' in scenario)) {
    throw new Error(`${file ?? 'standard input'}: a scenario has "objects" and "steps"`);
  }
  process.stdout.write(`${JSON.stringify(explainScenario(scenario as Scenario))}\n`);
  return 0;
}
