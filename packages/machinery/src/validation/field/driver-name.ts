/** Names that storage drivers give themselves. */
import { required, tooLong } from '../../meta/fielderrors.ts';
import { dnsSubdomainErrors } from '../../meta/names.ts';
import { invalidEach, type Findings } from './validation-rules.ts';

const DRIVER_NAME_LENGTH_MAX = 63;

/** The name of a driver, as it calls itself: a subdomain, in letters of either case. */
export function checkDriverName(found: Findings, path: string, name: string): void {
  if (name === '') {
    found.push(required(path));
    return;
  }
  if (name.length > DRIVER_NAME_LENGTH_MAX) found.push(tooLong(path, DRIVER_NAME_LENGTH_MAX));
  invalidEach(found, path, name, dnsSubdomainErrors(name.toLowerCase()));
}
