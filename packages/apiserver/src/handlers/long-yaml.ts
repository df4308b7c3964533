/** Bodies in YAML that are too long to be read in a turn of the event loop. */
import { timeout, tooManyRequests } from '@megaplane/machinery/status';
import type { Admission } from '../admission/admission.ts';
import { BODY_BYTES_MAX, mediaTypeOf } from '../serializer/body.ts';
import type { Call } from '../request/call.ts';
import { APPLY_TYPE, readPlainJson } from './applying.ts';
import { YAML_TYPE } from '../request/negotiation.ts';
import type { World } from '../lister/world.ts';

/** Shorter ones take some 10 ms, and 60 where they are all brackets. */
export const LONG_YAML_BYTES_MIN: number = 4 * 1024;

/** Goes on with a request at once, or in a later turn, when its long document was read. */
export function whenRead(world: World, admission: Admission, call: Call, then: () => void): void {
  const { edge } = world;
  if (edge.readYaml === undefined || !isLongYaml(call)) {
    then();
    return;
  }
  call.keepBody();
  const { exchange, identity } = call;
  const sender = { name: identity.user, isGone: () => exchange.closed };
  edge.readYaml(call.body, sender, (outcome) => {
    admission.resume(call, () => {
      if (outcome === 'crowded') {
        call.fail(
          tooManyRequests('Too many documents wait to be read, please try again later.', 1),
        );
        return;
      }
      call.yaml = outcome;
      if (outcome === null) call.fail(timeout());
      else then();
    });
  });
}

function isLongYaml(call: Call): boolean {
  const { length } = call.body;
  if (length < LONG_YAML_BYTES_MIN || length > BODY_BYTES_MAX) return false;
  const type = mediaTypeOf(call);
  if (type !== APPLY_TYPE) return type === YAML_TYPE;
  call.json = readPlainJson(call.body);
  return call.json === undefined;
}
