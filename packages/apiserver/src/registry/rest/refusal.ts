/** How plugins refuse. */
import { stringAt } from '@megaplane/machinery/json';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Admitted } from './admitted.ts';

/** The name that a refusal shows: the object's, the URL's, or the start of a generated one. */
export function writtenName({ object, call }: Admitted): string {
  const shown = object ?? {};
  return (
    stringAt(shown, 'metadata', 'name') ||
    call.info.name ||
    stringAt(shown, 'metadata', 'generateName') ||
    'Unknown'
  );
}

/** `pods "p" is forbidden: why`. */
export function refuse(write: Admitted, why: string): Status {
  return forbidden(write.served.plural, writtenName(write), why);
}

/** Random letters at the end of a generated name. */
const GENERATED_LENGTH = 5;

/**
 * The same for plugins that upstream asks before a name is generated: they know the start of it
 * only.
 */
export function refuseUnnamed(write: Admitted, why: string): Status {
  const shown = sentName(write);
  const start = stringAt(write.object ?? {}, 'metadata', 'generateName');
  return forbidden(write.served.plural, shown || start || 'Unknown', why);
}

/** The same for those that look at the object's name alone: none before it is generated. */
export function refuseNameless(write: Admitted, why: string): Status {
  return forbidden(write.served.plural, sentName(write), why);
}

/** The name of the object, '' where it has none or was given one. */
function sentName({ object, call }: Admitted): string {
  const start = stringAt(object ?? {}, 'metadata', 'generateName');
  const name = stringAt(object ?? {}, 'metadata', 'name') || call.info.name;
  const isMade = start !== '' && name.length === start.length + GENERATED_LENGTH;
  return isMade && name.startsWith(start) ? '' : name;
}
