/** How plugins refuse. */
import { stringAt } from '@megaplane/machinery/json';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Admitted } from './admission.ts';

/** The name that a refusal shows: the object's, the start of a generated one, or the URL's. */
export function writtenName({ object, call }: Admitted): string {
  const shown = object ?? {};
  return (
    stringAt(shown, 'metadata', 'name') ||
    call.info.name ||
    stringAt(shown, 'metadata', 'generateName')
  );
}

/** `pods "p" is forbidden: why`. */
export function refuse(write: Admitted, why: string): Status {
  return forbidden(write.served.plural, writtenName(write), why);
}
