import { resources } from '@megaplane/machinery/kinds';

/** An event about an object, as controllers tell it; the shell posts it. */
export type Announce = (
  kind: string,
  namespace: string,
  name: string,
  type: 'Normal' | 'Warning',
  reason: string,
  message: string,
  uid?: string,
) => void;

/**
 * The apiVersion that an event gives for an object of a built-in kind: `kubectl events --for` asks
 * for events of exactly this one, the version that clients prefer. '' for other kinds.
 */
export function eventVersionOf(kind: string): string {
  return resources().find((one) => one.kind === kind && one.served)?.apiVersion ?? '';
}
