/** Who comes to own fields where a request does not name a manager: its program. */
import { MANAGER_BYTES_MAX, UNPRINTABLE } from '@megaplane/machinery/field-manager';
import { headerText } from './header-text.ts';

/** The program's name before its version, without what cannot be printed, as far as it fits. */
export function managerOfAgent(userAgent: string): string {
  const name = userAgent.split('/')[0] ?? '';
  if (name.length <= MANAGER_BYTES_MAX && /^[ -~]*$/.test(name)) return name;
  let text = '';
  let size = 0;
  for (const letter of headerText(name)) {
    if (UNPRINTABLE.test(letter)) continue;
    size += Buffer.byteLength(letter);
    if (size > MANAGER_BYTES_MAX) break;
    text += letter;
  }
  return text;
}
