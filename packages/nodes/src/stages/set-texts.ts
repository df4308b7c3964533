// shell: reads the stage files that are part of this package
import { readFileSync } from 'node:fs';
import type { StageSet } from './stage-sets.ts';

/** A set of stages that comes with the program, as YAML. */
export function stageSetText(name: StageSet): string {
  return readFileSync(new URL(`../../stages/${name}.yaml`, import.meta.url), 'utf8');
}
