// shell: files of stages
/** Which stages play: files that the user names, or the sets that come with the program. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readStageFile, type OtherDocument, type StageLanguages } from './stage-file.ts';
import type { Stage } from './stage.ts';

/** Sets that come with the program; `fast` is what plays without any, as compiled code. */
export const STAGE_SETS = ['fast', 'general', 'chaos', 'volume', 'metrics'] as const;
export type StageSet = (typeof STAGE_SETS)[number];

/** Kinds of kwokctl's that files may hold and that change nothing here. */
const IGNORED_KINDS = new Set(['KwokctlConfiguration', 'KwokctlResource', 'KwokctlComponent']);

function isSet(name: string): name is StageSet {
  return STAGE_SETS.some((one) => one === name);
}

/** The path of a set that comes with the program. */
export function stageSetFile(name: StageSet): string {
  return fileURLToPath(new URL(`../../stages/${name}.yaml`, import.meta.url));
}

/**
 * The stages of files and sets, in their order. Throws an Error that names file, line and column.
 * `take` gets documents of other kinds and says whether it knows what to do with them; `warn` hears
 * of those that are left aside.
 */
export function loadStages(
  names: readonly string[],
  languages: StageLanguages,
  take: (document: OtherDocument, file: string) => boolean,
  warn: (message: string) => void,
): Stage[] {
  const stages: Stage[] = [];
  for (const name of names) {
    const path = isSet(name) ? stageSetFile(name) : name;
    const { stages: found, others } = readStageFile(name, textOf(path), languages);
    for (const other of others) {
      const { apiVersion, kind, field } = other;
      if (take(other, name)) continue;
      if (!IGNORED_KINDS.has(kind)) {
        throw field.error(`${apiVersion} ${kind} is no kind that the simulator knows`);
      }
      warn(field.error(`${kind} is for kwokctl and changes nothing`).message);
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
