/** Which stages play: files that the user names, or the sets that come with the program. */
import { PORT_KINDS, type PortConfig } from '../server/port-config.ts';
import { CONFIGURATION_API_VERSION } from './kwok-configuration.ts';
import { readStageFile, STAGE_API_VERSION, TOP_FIELDS, type OtherDocument } from './stage-file.ts';
import type { StageLanguages } from './stage-file.ts';
import type { Stage } from './stage.ts';
import { FileError, type Field } from '../yaml/yaml-fields.ts';

/** Sets that come with the program; `fast` is what plays without any, as compiled code. */
export const STAGE_SETS = ['fast', 'general', 'jobs', 'chaos', 'volume', 'metrics'] as const;
export type StageSet = (typeof STAGE_SETS)[number];

/** A file's text, or that of a set. */
export interface KwokFile {
  readonly name: string;
  readonly text: string;
  readonly isSet: boolean;
  /** Whether a directory listed it: then it may hold nothing of kwok. */
  readonly isListed?: boolean;
}

/** Kinds of kwokctl's that files may hold and that change nothing here. */
const IGNORED_KINDS = new Set(['KwokctlConfiguration', 'KwokctlResource', 'KwokctlComponent']);
/** Read before there is a server: its options are flags. */
const CONFIGURATION = 'KwokConfiguration';
const KINDS: readonly string[] = ['Stage', ...Object.keys(PORT_KINDS), CONFIGURATION];

/** The end of all of kwok's groups. */
const KWOK_GROUP = 'kwok.x-k8s.io/';

const EMPTY = 'the file holds no document; kind: Stage is expected, or another one of kwok';

/** Takes a document that is no stage; throws a FileError. */
export type TakeDocument = (document: OtherDocument, file: string) => void;

/** Puts what is said about the kubelets' port where the port looks. */
export function takeDocument(config: PortConfig, isDefault = false): TakeDocument {
  return ({ kind, field }, file) => {
    if (kind !== CONFIGURATION) config.put(kind, `${file} ${field.nameInside}`, field, isDefault);
  };
}

/**
 * The stages of files and sets, in their order. Throws an Error that names file, line and column.
 * `take` gets documents of kwok's other kinds; `warn` hears of those that are left aside.
 */
export function loadStages(
  files: readonly KwokFile[],
  languages: StageLanguages,
  take: TakeDocument,
  warn: (message: string) => void,
): Stage[] {
  const stages: Stage[] = [];
  const seen = new Map<string, string>();
  const once = (what: string, field: Field): void => {
    const before = seen.get(what);
    if (before !== undefined) throw field.error(`${what} is there already, at ${before}`);
    seen.set(what, field.place);
  };
  for (const { name, text, isSet, isListed } of files) {
    const file = readStageFile(name, text, languages);
    const { stages: found, places, others } = file;
    for (const warning of file.warnings) warn(warning);
    for (const [index, stage] of found.entries()) {
      const place = places[index];
      if (place !== undefined) once(`a stage ${stage.name} for ${stage.kind}`, place);
      stages.push(stage);
    }
    if (found.length + others.length === 0) throw new FileError(`${name}:1:1: ${EMPTY}`);
    const isMixed = isListed === true || found.length > 0 || !others.every(isForeign);
    for (const other of others) {
      const { kind, field } = other;
      if (isMixed && isForeign(other)) {
        warn(field.error(`${kind} is no kind of kwok and left aside`).message);
        continue;
      }
      if (IGNORED_KINDS.has(kind)) {
        warn(field.error(`${kind} is for kwokctl and changes nothing`).message);
        continue;
      }
      judgeKind(other);
      field.members(TOP_FIELDS);
      if (!isSet && kind !== CONFIGURATION) once(`${kind} ${field.nameInside}`, field);
      take(other, name);
    }
  }
  return stages;
}

/** Of another group than kwok's: what charts and directories hold beside stages. */
function isForeign({ apiVersion, kind }: OtherDocument): boolean {
  return apiVersion !== '' && !apiVersion.includes(KWOK_GROUP) && !KINDS.includes(kind);
}

function judgeKind({ apiVersion, kind, field }: OtherDocument): void {
  const found = JSON.stringify(kind);
  if (!KINDS.includes(kind)) {
    throw field.inside('kind').error(`${found} is no kind of kwok; known are ${KINDS.join(', ')}`);
  }
  const version = kind === CONFIGURATION ? CONFIGURATION_API_VERSION : STAGE_API_VERSION;
  if (apiVersion === version) return;
  throw field
    .inside('apiVersion')
    .error(`${JSON.stringify(apiVersion)} has no ${kind}; write ${version}`);
}
