// shell: files of stages
/** Which stages play: files that the user names, or the sets that come with the program. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TemplateFunctions } from '../templates/template-run.ts';
import { readStageFile } from './stage-file.ts';
import type { Stage } from './stage.ts';

/** Sets that come with the program; `fast` is what plays without any, as compiled code. */
export const STAGE_SETS = ['fast', 'general', 'chaos', 'volume'] as const;
export type StageSet = (typeof STAGE_SETS)[number];

/** Kinds of kwok's that files may hold and that change nothing here yet. */
const KNOWN_KINDS = new Set([
  'KwokConfiguration',
  'KwokctlConfiguration',
  'KwokctlResource',
  'ClusterResourceUsage',
  'ResourceUsage',
  'Metric',
  'Logs',
  'ClusterLogs',
  'Exec',
  'ClusterExec',
  'Attach',
  'ClusterAttach',
  'PortForward',
  'ClusterPortForward',
]);

function isSet(name: string): name is StageSet {
  return STAGE_SETS.some((one) => one === name);
}

/** The path of a set that comes with the program. */
export function stageSetFile(name: StageSet): string {
  return fileURLToPath(new URL(`../../stages/${name}.yaml`, import.meta.url));
}

/**
 * The stages of files and sets, in their order. Throws an Error that names file, line and column;
 * `warn` hears of documents that are left aside.
 */
export function loadStages(
  names: readonly string[],
  functions: TemplateFunctions,
  warn: (message: string) => void,
): Stage[] {
  const stages: Stage[] = [];
  for (const name of names) {
    const path = isSet(name) ? stageSetFile(name) : name;
    const { stages: found, others } = readStageFile(name, textOf(path), functions);
    for (const { apiVersion, kind, field } of others) {
      if (!KNOWN_KINDS.has(kind)) {
        throw field.error(`${apiVersion} ${kind} is no kind that the simulator knows`);
      }
      warn(field.error(`${kind} is not supported yet and changes nothing`).message);
    }
    for (const stage of found) {
      const isTwice = stages.some((one) => one.name === stage.name && one.kind === stage.kind);
      if (isTwice) throw new Error(`${name}: there are two stages ${stage.name} for ${stage.kind}`);
      stages.push(stage);
    }
  }
  return stages;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}
