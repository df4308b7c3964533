// shell: reads files and standard input
/** What the scheduler's subcommands read: configurations and scenarios. */
import { readFileSync } from 'node:fs';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseConfiguration } from '@megaplane/scheduler/configuration/configuration';
import type { SchedulerConfiguration } from '@megaplane/scheduler/configuration/configuration';
import { explainScenario } from '@megaplane/scheduler/explain';
import type { Scenario } from '@megaplane/scheduler/explain';
import { parseDocument } from 'yaml';

/** A KubeSchedulerConfiguration; throws with every fault of it, a line each. */
export function readConfiguration(file: string): SchedulerConfiguration {
  const faults = (errors: readonly string[]): Error =>
    new Error(`--config ${file}:\n  ${errors.join('\n  ')}`);
  // As kube-scheduler reads it: `yes` is true, and a member must not be there twice.
  const document = parseDocument(readFileSync(file, 'utf8'), { version: '1.1' });
  if (document.errors.length > 0) throw faults(document.errors.map(({ message }) => message));
  const parsed = parseConfiguration(document.toJS() as JsonValue);
  if (!parsed.ok) throw faults(parsed.errors);
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
